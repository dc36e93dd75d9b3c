package trainer

import "context"

// prune drops the files of regressors that can no longer be promoted.
func (t *Trainer) prune(ctx context.Context, target string) {
	t.mu.Lock()
	needed, former := t.files(target)
	t.mu.Unlock()
	for _, files := range former {
		dropped := true
		for _, digest := range files {
			if needed[digest] {
				continue
			}
			if err := t.bus.DropArtifact(ctx, digest); err != nil {
				dropped = false
				if ctx.Err() == nil {
					t.log.Warn("files of a former regressor not dropped",
						"target", target, "digest", digest, "error", err)
				}
			}
		}
		if dropped {
			t.mu.Lock()
			t.registry.target(target).pruned[files[0]] = true
			t.mu.Unlock()
		}
	}
}

// files returns the digests of all files that regressors of any target need, and the digests of
// model and manifest of each version of one target whose files may be dropped.
func (t *Trainer) files(target string) (needed map[string]bool, former [][2]string) {
	needed = map[string]bool{}
	for _, all := range t.registry.targets {
		for digest := range all.keptFiles() {
			needed[digest] = true
			if v := all.versions[digest]; v != nil {
				needed[v.ManifestDigest] = true
			}
		}
	}
	r := t.registry.target(target)
	for digest, v := range r.versions {
		if !needed[digest] && !r.pruned[digest] {
			former = append(former, [2]string{digest, v.ManifestDigest})
		}
	}
	return needed, former
}
