package schemas

import "strings"

// datasetMark is between the names of a model and of its dataset in a level. Where a name has the
// mark or levelEscape, levelEscape is before it.
const (
	datasetMark = '@'
	levelEscape = '\\'
)

// ModelLevel names what is trained, as the levels of ColumnModel do: "model@dataset", or the
// model alone without a dataset. Runs of one model on two datasets predict nothing of each other,
// so that each dataset makes a level of its own. Different pairs have different levels.
func ModelLevel(model, dataset string) string {
	if dataset == "" {
		return escapeLevel(model)
	}
	return escapeLevel(model) + string(datasetMark) + escapeLevel(dataset)
}

// ParseModelLevel returns the model and the dataset that ModelLevel named.
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
