package schemas

import "testing"

// Text from other sources can neither control a terminal nor change the direction of a line.
func TestOneLine(t *testing.T) {
	for _, c := range []struct {
		text, want string
		isValid    bool
	}{
		{"résumé 模型 – 95 %", "résumé 模型 – 95 %", true},
		{"a\tb\nc", "a b c", false},
		{"\x1b[31mred", " [31mred", false},
		{"\u009b31mred", " 31mred", false}, // the same in one character, C1
		{"job-\u202egnp.exe", "job- gnp.exe", false},
		{"a\u2066b\u2069\u200f", "a b  ", false},
		{"a\u2028b", "a b", false},
	} {
		if got := OneLine(c.text); got != c.want {
			t.Errorf("OneLine(%q) = %q, want %q", c.text, got, c.want)
		}
		if err := validateText("model", c.text); (err == nil) != c.isValid {
			t.Errorf("validateText(%q) = %v, want valid: %t", c.text, err, c.isValid)
		}
	}
	if got, want := Printable("a\x1b\nb\u202e\t\n"), "a \nb \t\n"; got != want {
		t.Errorf("Printable = %q, want %q", got, want)
	}
}
