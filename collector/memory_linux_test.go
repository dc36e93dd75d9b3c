package collector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProgramRanges(t *testing.T) {
	const maps = `00400000-01765000 r-xp 00000000 fe:00 123   /opt/my programs/courier
01765000-02b1e000 r--p 01365000 fe:00 123   /opt/my programs/courier
02b1e000-02c1b000 rw-p 0271e000 fe:00 123   /opt/my programs/courier
02c1b000-04c8e000 rw-p 00000000 00:00 0
03000000-03001000 r--s 00000000 fe:00 123   /opt/my programs/courier
7f006696b000-7f0066ac1000 r-xp 00026000 fe:00 99   /usr/lib/libc.so.6
7f0066ac1000-7f0066ac0000 r-xp 00026000 fe:00 99   /opt/my programs/courier
zz-1 r-xp 0 0 0 /opt/my programs/courier
garbage
`
	got := programRanges(maps, "/opt/my programs/courier")
	if diff := cmp.Diff([]addressRange{
		{0x400000, 0x1765000},
		{0x1765000, 0x2b1e000},
	}, got, cmp.AllowUnexported(addressRange{})); diff != "" {
		t.Errorf("programRanges() (-want +got):\n%s", diff)
	}
}
