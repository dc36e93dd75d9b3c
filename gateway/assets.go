package gateway

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
)

//go:embed web openapi.yaml
var files embed.FS

// indexFile is the page, which shows the view of its address.
const indexFile = "web/index.html"

type asset struct {
	data []byte
	kind string // content type
	tag  string // ETag, computed from the content
}

// contentTypes maps extensions of embedded files to content types. The system's table differs
// between machines.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
	".yaml": "application/yaml",
}

func readAssets() (map[string]asset, error) {
	assets := map[string]asset{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		kind, known := contentTypes[path.Ext(name)]
		if !known {
			return fmt.Errorf("%s: no content type for its extension", name)
		}
		assets[name] = asset{data: data, kind: kind, tag: tagOf(data)}
		return nil
	})
	return assets, err
}
