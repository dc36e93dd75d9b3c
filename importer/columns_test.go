package importer_test

import (
	"strings"
	"testing"

	"courier/importer"
)

// Columns with another case or separators are recognized, others listed, and equal refusals are one
// message.
func TestSummary_ListsColumns(t *testing.T) {
	const text = ",Model,BatchSize,CPUs,Epochs,Took seconds,ValAcc,gpu_type,Notes\n" +
		"0,resnet,32,2,3,120,0.8,V100,a\n1,resnet,64,2,3,100,0.8,V100,b\n2,resnet,128,2,3,90,0.8,V100,c\n"
	found := read(t, importer.Options{}, "runs.csv", text)
	var out strings.Builder
	importer.NewSummary(found).WriteText(&out)
	for _, want := range []string{
		"columns\tmodel=Model,batch_size=BatchSize,cpus=CPUs,epochs=Epochs,accuracy=ValAcc,gpu_model=gpu_type\n",
		"not used\tTook seconds, Notes\n",
		"runs.csv:2: duration_seconds: missing in the source: name its column with --columns " +
			"duration_seconds=NAME (and 2 more)\n",
	} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("the summary lacks %q:\n%s", want, &out)
		}
	}
}
