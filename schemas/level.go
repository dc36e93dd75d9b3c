package schemas

import (
	"fmt"
	"strconv"
	"strings"
)

// ModelLevel returns the level of the column "model" for a model and its dataset: "model@dataset", or the
// model alone without a dataset. Each pair has its own level, because runs on one dataset predict
// nothing about another.
func ModelLevel(model, dataset string) string {
	if dataset == "" {
		return levelEscaper.Replace(model)
	}
	return levelEscaper.Replace(model) + "@" + levelEscaper.Replace(dataset)
}

// nominalBatchSize stands for an unknown batch size among features, which are logarithms. It is the
// smallest of DefaultBatchSizes.
const nominalBatchSize = 64

// LearnedAs returns the model and the batch size under which runs are learned and predicted. Runs with
// an unknown batch size, 0, are a model of their own: they predict nothing about a known one.
func LearnedAs(model string, batchSize uint32) (string, uint32) {
	if batchSize == 0 {
		return model + " (unknown batch size)", nominalBatchSize
	}
	return model, batchSize
}

// FormatBatchSize formats a batch size for a sentence.
func FormatBatchSize(n uint32) string {
	if n == 0 {
		return "unknown batch size"
	}
	return fmt.Sprintf("batch size %d", n)
}

// OptionalBatchSize formats a batch size for a column of a table, or - for an unknown one.
func OptionalBatchSize(n uint32) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(uint64(n), 10)
}

// levelEscaper marks a separator that belongs to a name.
var levelEscaper = strings.NewReplacer(`\`, `\\`, `@`, `\@`)
