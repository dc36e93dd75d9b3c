package treefile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// manifestFormat is incremented when an older program could misread a manifest.
const manifestFormat = 1

// Transform of the target in a file.
type Transform string

const (
	None Transform = "none" // the file has values in the unit of the target
	Log  Transform = "log"  // the file has their natural logarithms
)

// Manifest is the JSON document that accompanies a file.
type Manifest struct {
	Format int    `json:"format"` // of this document; set by Encode
	SHA256 string `json:"sha256"` // of the file, hexadecimal; set by Encode

	Target    string    `json:"target"` // name of the predicted quantity, in Unit
	Unit      string    `json:"unit,omitempty"`
	Transform Transform `json:"transform"`
	// Features of a row in order; set by Encode.
	Features []Feature `json:"features"`

	// State of the regressor in the JSON of package evidence: the distributions around the values
	// in the file.
	State json.RawMessage `json:"state,omitempty"`
	// HeldOutError of runs whose configuration has other runs: for times the mean of |error| /
	// truth, for accuracies the mean of |error|; nil if no run could be held out.
	HeldOutError *float64 `json:"held_out_error,omitempty"`
	Examples     Examples `json:"examples"`
	// Version of the program that fitted the regressor.
	Version string `json:"version,omitempty"`
}

// Examples describes the examples of a fit.
type Examples struct {
	Count          int       `json:"count"`
	Configurations int       `json:"configurations"` // distinct ones
	Last           time.Time `json:"last_at,omitzero"`
}

// Feature describes a column of a file.
type Feature struct {
	Name string `json:"name"` // letters, digits and underscores
	Unit string `json:"unit,omitempty"`
	// Levels are the names of a category, of which a row contains the index; nil for a number.
	Levels []string `json:"levels,omitempty"`
	// Min and Max of the points; set by Grow.
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	// Typical is the value for callers that do not know the feature.
	Typical float64 `json:"typical,omitempty"`
}

// encode returns the manifest of a file as JSON.
func (m Manifest) encode(model []byte) ([]byte, error) {
	m.Format, m.SHA256 = manifestFormat, digestOf(model)
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode manifest of %s: %w", m.Target, err)
	}
	return append(b, '\n'), nil
}

// readManifest reads a manifest and compares it with its file. Unknown fields are ignored: a newer
// program may write more.
func readManifest(manifest, model []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(manifest, m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if m.Format != manifestFormat {
		return nil, fmt.Errorf("manifest: format is %d, want %d", m.Format, manifestFormat)
	}
	if digest := digestOf(model); m.SHA256 != digest {
		return nil, fmt.Errorf("sha256 of the file is %s, manifest says %q", digest, m.SHA256)
	}
	return m, nil
}

// digestOf returns the sha256 of a file, in hex.
func digestOf(model []byte) string {
	digest := sha256.Sum256(model)
	return hex.EncodeToString(digest[:])
}
