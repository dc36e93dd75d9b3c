package trainer

import (
	"context"
	"maps"
	"time"

	"courier/regress/treefile"
	"courier/schemas"
)

// publish publishes an event of a regressor and applies it immediately; the copy from the stream is
// then a duplicate.
func (t *Trainer) publish(ctx context.Context, e schemas.Event) error {
	if _, err := t.bus.Publish(ctx, e); err != nil {
		return err
	}
	t.mu.Lock()
	t.registry.Apply(e)
	t.mu.Unlock()
	t.loadChampions(ctx)
	return nil
}

// loadChampions loads the champions of the registry that are not loaded yet.
func (t *Trainer) loadChampions(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, all := *t.champions.Load(), map[string]*loadedChampion{}
	for target, r := range t.registry.targets {
		v := r.versions[r.champion()]
		if v == nil {
			continue
		}
		if l := before[target]; l != nil && l.manifestDigest == v.ManifestDigest {
			all[target] = l
			continue
		}
		m, err := t.load(ctx, v.ModelDigest, v.ManifestDigest)
		if err != nil {
			if ctx.Err() == nil {
				t.log.Warn("regressor not loaded",
					"target", v.Target, "digest", v.ModelDigest, "error", err)
			}
			continue
		}
		all[target] = &loadedChampion{manifest: m, manifestDigest: v.ManifestDigest}
	}
	t.champions.Store(&all)
}

// load loads a regressor from its files and returns its manifest.
func (t *Trainer) load(ctx context.Context, model, manifest string) (*treefile.Manifest, error) {
	var files Files
	var err error
	if files.Manifest, err = t.bus.Artifact(ctx, manifest); err != nil {
		return nil, err
	}
	if files.Model, err = t.bus.Artifact(ctx, model); err != nil {
		return nil, err
	}
	file, err := treefile.Load(files.Model, files.Manifest)
	if err != nil {
		return nil, err
	}
	return file.Manifest(), nil
}

// publishCorrections publishes the corrections of a target that began, changed or ended with its
// champion. The registry holds the corrections that were published before, so none is repeated or
// lost.
func (t *Trainer) publishCorrections(ctx context.Context, target string) {
	champion := (*t.champions.Load())[target]
	if champion == nil {
		return
	}
	t.mu.Lock()
	r := t.registry.target(target)
	published := maps.Clone(r.corrections)
	version := *r.versions[r.champion()]
	t.mu.Unlock()
	for _, e := range changedCorrections(stateOf(champion.manifest), published, &version,
		time.Now().UTC()) {
		if err := t.publish(ctx, e); err != nil {
			if ctx.Err() == nil {
				t.log.Warn("drift not published, will retry", "target", target, "error", err)
			}
			return
		}
		if e.State == schemas.DriftActive {
			t.metrics.drifts.Inc()
		}
		t.log.Info("drift",
			"target", target,
			"state", e.State,
			"scope", e.Scope,
			"model", e.Model,
			"node_type", e.NodeType,
			"batch_size_from", e.BatchSizeFrom,
			"batch_size_to", e.BatchSizeTo,
			"ratio", e.Ratio,
			"since", e.SinceAt,
			"jobs", e.Jobs,
		)
	}
}
