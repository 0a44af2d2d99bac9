package report

import "math"

// axis places values between two ends of a line.
type axis struct {
	from, to    float64 // pixels
	least, most float64 // values at them
	logarithmic bool
	ticks       []float64
}

// linear is an axis from 0 to at least most.
func linear(from, to, most float64) *axis {
	if !known(most) {
		most = 1
	}
	a := &axis{from: from, to: to, most: most}
	step := niceStep(most / 5)
	for v := 0.0; v <= most*1.0001; v += step {
		a.ticks = append(a.ticks, v)
	}
	return a
}

// niceStep is the least of 1, 2, 2.5 and 5 times a power of ten that is not less than v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*power >= v*0.9999 {
			return m * power
		}
	}
	return 10 * power
}

// logarithm is an axis around least and most, with ticks at the powers of ten and, where these are
// few, at 2 and 5 times them.
func logarithm(from, to, least, most float64) *axis {
	if !known(least) || !known(most) {
		least, most = 1, 10
	}
	a := &axis{from: from, to: to, least: least / 1.15, most: most * 1.15, logarithmic: true}
	steps := []float64{1, 2, 5}
	if math.Log10(a.most/a.least) > 2.6 {
		steps = []float64{1}
	}
	for e := math.Floor(math.Log10(a.least)); e <= math.Log10(a.most); e++ {
		for _, m := range steps {
			if v := m * math.Pow(10, e); v >= a.least && v <= a.most {
				a.ticks = append(a.ticks, v)
			}
		}
	}
	return a
}

// at returns the pixel of a value.
func (a *axis) at(v float64) float64 {
	share := (v - a.least) / (a.most - a.least)
	if a.logarithmic {
		share = math.Log(v/a.least) / math.Log(a.most/a.least)
	}
	return a.from + (a.to-a.from)*min(max(share, 0), 1)
}
