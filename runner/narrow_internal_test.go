package runner

import "testing"

func TestNarrower_CutsOnlyDrawings(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a line", "0123456789\n", "0123456789\n"},
		{"a drawing", "\r0123456789\r9876543210\n", "\r01234567\r98765432\n"},
		{"a line after a drawing", "\r0123456789\n0123456789\n", "\r01234567\n0123456789\n"},
		{"a windows line", "0123456789\r\n0123456789\r\n", "0123456789\r\n0123456789\r\n"},
		{"colours have no width", "\r\x1b[31m0123\x1b[0m4567\x1b[K89\n", "\r\x1b[31m0123\x1b[0m4567\x1b[K\n"},
		{"characters of several bytes", "\r█████████\n", "\r████████\n"},
		{"the cursor moves up", "\x1b[A0123456789\n", "\x1b[A01234567\n"},
		{"backspaces", "01234567\b\b\b\b890123\n", "01234567\b\b\b\b8901\n"},
		{"a title", "\x1b]0;0123456789\x07\r0123456789", "\x1b]0;0123456789\x07\r01234567"},
	} {
		for _, size := range []int{1, 3, len(c.text)} {
			var n narrower
			var got []byte
			for data := []byte(c.text); len(data) > 0; {
				k := min(size, len(data))
				got = append(got, n.cut(data[:k], 8)...)
				data = data[k:]
			}
			if string(got) != c.want {
				t.Errorf("%s in pieces of %d: %q, want %q", c.name, size, got, c.want)
			}
		}
	}
}
