package schemas

import "strings"

// datasetMark separates the names of a model and its dataset in a level. levelEscape precedes each
// of the two characters within a name.
const (
	datasetMark = '@'
	levelEscape = '\\'
)

// ModelLevel returns the level of the column "model" for a model and its dataset: "model@dataset", or the
// model alone without a dataset. Each pair has its own level, because runs on one dataset predict
// nothing about another.
func ModelLevel(model, dataset string) string {
	if dataset == "" {
		return escapeLevel(model)
	}
	return escapeLevel(model) + string(datasetMark) + escapeLevel(dataset)
}

// ParseModelLevel returns the model and the dataset of a level.
func ParseModelLevel(level string) (model, dataset string) {
	for i := 0; i < len(level); i++ {
		switch level[i] {
		case levelEscape:
			i++
		case datasetMark:
			return unescapeLevel(level[:i]), unescapeLevel(level[i+1:])
		}
	}
	return unescapeLevel(level), ""
}

var levelEscaper = strings.NewReplacer(`\`, `\\`, `@`, `\@`)

func escapeLevel(name string) string {
	if !strings.ContainsAny(name, `\@`) {
		return name
	}
	return levelEscaper.Replace(name)
}

func unescapeLevel(text string) string {
	if strings.IndexByte(text, levelEscape) < 0 {
		return text
	}
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == levelEscape && i+1 < len(text) {
			i++
		}
		b = append(b, text[i])
	}
	return string(b)
}
