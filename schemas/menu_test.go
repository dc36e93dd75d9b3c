package schemas_test

import (
	"testing"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

func TestAdvice_OtherChoicesLeavesOutTheChosenAlternative(t *testing.T) {
	chosen := schemas.Choice{Kind: schemas.ChoiceUnbeaten, BatchSize: 16, CPUs: 1, Epochs: 8}
	cheaper := schemas.Choice{Kind: schemas.ChoiceUnbeaten, BatchSize: 64, CPUs: 1, Epochs: 8}
	longer := schemas.Choice{Kind: schemas.ChoiceDeadline, BatchSize: 16, CPUs: 1, Epochs: 8}
	a := schemas.Advice{
		Menu:   []schemas.Choice{chosen, cheaper, longer},
		Chosen: &schemas.Alternative{BatchSize: 16, CPUs: 1, Epochs: 8},
	}
	if diff := cmp.Diff([]schemas.Choice{cheaper, longer}, a.OtherChoices()); diff != "" {
		t.Errorf("other choices (-want +got):\n%s", diff)
	}
	if len(a.Menu) != 3 {
		t.Errorf("the menu has %d choices afterwards, want all 3", len(a.Menu))
	}
}
