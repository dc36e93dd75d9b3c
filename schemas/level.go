package schemas

import "strings"

// ModelLevel returns the level of the column "model" for a model and its dataset: "model@dataset", or the
// model alone without a dataset. Each pair has its own level, because runs on one dataset predict
// nothing about another.
func ModelLevel(model, dataset string) string {
	if dataset == "" {
		return levelEscaper.Replace(model)
	}
	return levelEscaper.Replace(model) + "@" + levelEscaper.Replace(dataset)
}

// levelEscaper marks a separator that belongs to a name.
var levelEscaper = strings.NewReplacer(`\`, `\\`, `@`, `\@`)
