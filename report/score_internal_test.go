package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"courier/report/columns"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// Score prints the example of the contract.
func TestScore_PrintsTheExample(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "schemas", "testdata", "score.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s schemas.Score
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	s.Users = append(s.Users, schemas.ScoreLine{Others: true})
	s.Trend = []schemas.ScoreStep{
		{Tally: schemas.Tally{Jobs: 2, Kept: 1, Lost: 1}}, {}, {Tally: schemas.Tally{Jobs: 3, Kept: 3}}, {},
	}
	var out bytes.Buffer
	Score(&out, &s)
	if diff := cmp.Diff(scoreExample, columns.Layout{}.Format(out.String())); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

const scoreExample = `promises of  name         confidence  jobs  met SLO  attainment     interval  incomplete  cancelled  lost
all                                      5        4       0.800  0.376-0.964           1          1     1
first half                               2        1       0.500            -           0          0     1
second half                              3        3       1.000            -           0          0     0
confidence                      0.95     4        3       0.750  0.301-0.954           1          1     1
confidence                       0.8     1        1       1.000  0.207-1.000           0          0     0
user         ada                0.95     2        2       1.000  0.342-1.000           0          0     1
user         grace              0.95     2        1       0.500  0.095-0.905           1          1     0
user         ada                 0.8     1        1       1.000  0.207-1.000           0          0     0
user         (others)              -     0        0           -            -           0          0     0
model        digits-mlp         0.95     4        3       0.750  0.301-0.954           1          1     1
model        digits-mlp          0.8     1        1       1.000  0.207-1.000           0          0     0
decision     meets_slo          0.95     4        3       0.750  0.301-0.954           1          1     1
decision     best_effort        0.95     1        0       0.000  0.000-0.793           0          0     0
decision     meets_slo           0.8     1        1       1.000  0.207-1.000           0          0     0

predicted probability   mean  jobs  met SLO  attainment     interval
            0.40-0.50  0.400     1        0       0.000  0.000-0.793
            0.80-0.90  0.850     1        1       1.000  0.207-1.000
            0.95-0.99  0.970     3        2       0.667  0.208-0.939
            0.99-1.00  0.995     1        1       1.000  0.207-1.000
` + scoreLegend
