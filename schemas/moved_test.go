package schemas_test

import (
	"slices"
	"testing"

	"courier/schemas"
)

func TestRowOf_HasTheLoansOfAnAdmission(t *testing.T) {
	e := &schemas.Submitted{}
	e.Advice.Admission = &schemas.Admission{
		Verdict: schemas.Admitted,
		Loans: []schemas.Loan{
			{JobID: "a", FromCPUs: 2, ToCPUs: 1}, {JobID: "b", FromCPUs: 8, ToCPUs: 4},
		},
	}
	_, row, _ := schemas.RowOf(e)
	r := row.(*schemas.SubmittedRow)
	if !slices.Equal(r.LoanJobIDs, []string{"a", "b"}) ||
		!slices.Equal(r.LoanFromCPUs, []uint32{2, 8}) || !slices.Equal(r.LoanToCPUs, []uint32{1, 4}) {
		t.Errorf("loans %v from %v to %v", r.LoanJobIDs, r.LoanFromCPUs, r.LoanToCPUs)
	}
}

// The advice that starts a queued job has its loans.
func TestRowOf_HasTheLoansOfAQueuedJob(t *testing.T) {
	a := &schemas.Advice{Action: schemas.ActionStart, Admission: &schemas.Admission{
		Verdict: schemas.Admitted,
		Loans:   []schemas.Loan{{JobID: "a", FromCPUs: 2, ToCPUs: 1}},
	}}
	_, row, _ := schemas.RowOf(a)
	r := row.(*schemas.AdviceRow)
	if !slices.Equal(r.LoanJobIDs, []string{"a"}) || !slices.Equal(r.LoanFromCPUs, []uint32{2}) ||
		!slices.Equal(r.LoanToCPUs, []uint32{1}) {
		t.Errorf("loans %v from %v to %v", r.LoanJobIDs, r.LoanFromCPUs, r.LoanToCPUs)
	}
}
