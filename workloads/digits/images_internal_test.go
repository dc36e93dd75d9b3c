package digits

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustLoad(t testing.TB) (training, heldOut imageSet) {
	t.Helper()
	training, heldOut, err := loadImages()
	if err != nil {
		t.Fatal(err)
	}
	return training, heldOut
}

func TestImages_AreThoseOfTheRepository(t *testing.T) {
	training, heldOut := mustLoad(t)
	if training.len() != 1200 || heldOut.len() != 597 {
		t.Errorf("%d training and %d held-out images, want 1200 and 597", training.len(),
			heldOut.len())
	}
	counts := make([]int, classCount)
	for _, label := range append(append([]uint8{}, training.labels...), heldOut.labels...) {
		counts[label]++
	}
	// Counts of each digit in the description of the repository.
	if diff := cmp.Diff([]int{
		178, 182, 177, 183, 181, 182, 181, 179, 174, 180,
	}, counts); diff != "" {
		t.Errorf("images of each digit (-want +got):\n%s", diff)
	}
	// The first image, a zero, as printed in the documentation of load_digits.
	want := []float32{0, 0, 5, 13, 9, 1, 0, 0}
	for k, v := range want {
		if got := training.image(0)[k] * pixelMax; got != v {
			t.Errorf("pixel %d of the first image = %g, want %g", k, got, v)
		}
	}
}

func TestReadImages_RefusesOtherFiles(t *testing.T) {
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	good, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int, value byte) []byte {
		content := bytes.Clone(good)
		content[at] = value
		return content
	}
	tests := []struct {
		name    string
		content []byte
		want    string
	}{
		{"pixel too dark", changed(70, 17), "image 1: pixel 17"},
		{"no digit", changed(64, 10), "image 0: digit 10"},
		{"too short", good[:len(good)-1], "got 116804 bytes"},
		{"too long", append(bytes.Clone(good), 0), "want 116805"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var file bytes.Buffer
			w := gzip.NewWriter(&file)
			if _, err := w.Write(tt.content); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := readImages(&file); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("readImages() = %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := readImages(strings.NewReader("no gzip at all")); err == nil {
		t.Error("readImages(text) succeeded")
	}
}

func TestWarp(t *testing.T) {
	training, _ := mustLoad(t)
	in, out := training.image(1), make([]float32, pixelCount)
	pixel := func(y, x int) float32 {
		if y < 0 || y >= imageSide || x < 0 || x >= imageSide {
			return 0
		}
		return in[y*imageSide+x]
	}
	for _, shift := range []struct{ left, up int }{
		{0, 0},
		{1, 0},
		{-1, 0},
		{0, 1},
		{0, -1},
		{1, -1},
	} {
		warp(out, in, 0, float64(shift.left), float64(shift.up))
		for k, got := range out {
			if want := pixel(k/imageSide+shift.up, k%imageSide+shift.left); got != want {
				t.Errorf("warp(left %d, up %d): pixel %d = %g, want %g", shift.left, shift.up, k,
					got, want)
			}
		}
	}
	// Images with the largest distortions stay within the margin and the range of values.
	for _, turn := range []float64{-maxTurn, maxTurn} {
		for _, left := range []float64{-maxShift, maxShift} {
			for _, up := range []float64{-maxShift, maxShift} {
				warp(out, in, turn, left, up)
				for k, v := range out {
					if v < 0 || v > 1 {
						t.Errorf("warp(%g, %g, %g): pixel %d = %g, want 0 to 1", turn, left, up,
							k, v)
					}
				}
			}
		}
	}
}

func TestWarp_TurnsAboutTheMiddle(t *testing.T) {
	in, out := make([]float32, pixelCount), make([]float32, pixelCount)
	in[0*imageSide+3] = 1 // above the middle: half a pixel left, 3.5 up
	warp(out, in, maxTurn, 0, 0)
	var x, y, ink float64
	for k, v := range out {
		x += float64(v) * (float64(k%imageSide) - 3.5)
		y += float64(v) * (float64(k/imageSide) - 3.5)
		ink += float64(v)
	}
	// A pixel of the copy is read at its position turned by 0.2, so the image is turned by -0.2.
	wantX := math.Cos(maxTurn)*-0.5 + math.Sin(maxTurn)*-3.5
	wantY := -math.Sin(maxTurn)*-0.5 + math.Cos(maxTurn)*-3.5
	if math.Abs(x/ink-wantX) > 0.3 || math.Abs(y/ink-wantY) > 0.3 {
		t.Errorf("warp(turn %g) moved the ink to %.2f, %.2f, want about %.2f, %.2f",
			maxTurn, x/ink, y/ink, wantX, wantY)
	}
}

func TestDistort_GivesOtherImages(t *testing.T) {
	training, _ := mustLoad(t)
	random := rand.New(rand.NewPCG(1, 1))
	one, two := make([]float32, pixelCount), make([]float32, pixelCount)
	distort(one, training.image(5), random)
	distort(two, training.image(5), random)
	if cmp.Equal(one, two) || cmp.Equal(one, training.image(5)) {
		t.Error("distort() returned the same image twice, or its argument")
	}
}
