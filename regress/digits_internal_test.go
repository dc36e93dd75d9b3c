package regress

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestShortNumber_ReadsWhatStrconvReads(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	texts := []string{
		"0", "-0", "-0.5", "1.", ".5", "123456789012345", "0.00000000000001", "999999999999.999",
	}
	for range 20_000 {
		texts = append(texts,
			strconv.FormatFloat(random.NormFloat64()*math.Pow10(random.IntN(8)), 'f',
				random.IntN(8), 64))
	}
	for _, text := range texts {
		want, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []string{"", " 7"} {
			got, length := shortNumber(text + end)
			if length != len(text) || math.Float64bits(got) != math.Float64bits(want) {
				t.Errorf("shortNumber(%q) = %v, %d, want %v, %d", text+end, got, length, want,
					len(text))
			}
		}
	}
	for _, text := range []string{
		"", " 1", "-", ".", "-.", "+1", "1e3", "NaN", "Inf", "0x1", "1_0", "1-", "1..2", "1\t",
		"1234567890123456",
	} {
		if x, length := shortNumber(text); length != 0 {
			t.Errorf("shortNumber(%q) = %v, %d, want length 0, so that strconv parses it", text, x, length)
		}
	}
}

func TestShortInteger_ReadsWhatStrconvReads(t *testing.T) {
	for _, text := range []string{
		"0", "-0", "7", "-12", "2147483647", "123456789012345", "-123456789012345", "007",
	} {
		want, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, length := shortInteger(text + " 5"); got != want || length != len(text) {
			t.Errorf("shortInteger(%q) = %d, %d, want %d, %d", text, got, length, want, len(text))
		}
	}
	for _, text := range []string{
		"", " 1", "-", "+1", "1.0", "1e3", "1_0", "--1", "1234567890123456",
	} {
		if n, length := shortInteger(text); length != 0 {
			t.Errorf("shortInteger(%q) = %d, %d, want length 0, so that strconv parses it", text, n, length)
		}
	}
}
