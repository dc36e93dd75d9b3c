package regress

import "math"

// slots finds a number among some at once: each has a place of its own, the top
// byte of its bits times a multiplier under which no two share one (a perfect
// hash: Fredman, Komlós, Szemerédi 1984).
type slots struct {
	multiplier uint64
	at         [256]float64
}

// mostSlots is how many numbers still leave one multiplier in eight without two
// of them in one place.
const mostSlots = mostMeasured

// newSlots returns nil for no numbers, for more than mostSlots, and where no
// multiplier is found, which no finite numbers are known to cause.
func newSlots(numbers []float64) *slots {
	if len(numbers) == 0 || len(numbers) > mostSlots {
		return nil
	}
	random := stream(5)
	for range 10_000 {
		s := &slots{multiplier: random.next() | 1}
		for i := range s.at {
			s.at[i] = math.NaN() // equal to nothing
		}
		free := true
		for _, x := range numbers {
			place := &s.at[s.place(x)]
			free = free && (math.IsNaN(*place) || *place == x)
			*place = x
		}
		if free {
			return s
		}
	}
	return nil
}

// place of x; 0 and -0 are one number.
func (s *slots) place(x float64) uint8 { return uint8(math.Float64bits(x+0) * s.multiplier >> 56) }

func (s *slots) holds(x float64) bool { return s.at[s.place(x)] == x }
