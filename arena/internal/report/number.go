package report

import (
	"math"
	"strconv"
	"strings"
)

// thousands prints a number with digits decimals and commas: 180,295.
func thousands(v float64, digits int) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', digits, 64)
	whole, fraction, _ := strings.Cut(text, ".")
	var b strings.Builder
	if v < 0 && strings.Trim(text, "0.") != "" {
		b.WriteByte('-')
	}
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	if fraction != "" {
		b.WriteString("." + fraction)
	}
	return b.String()
}

// counted prints a number and its noun: 1 caller, 2 callers.
func counted(n int, noun string) string {
	if n != 1 {
		if strings.HasSuffix(noun, "s") {
			noun += "es"
		} else {
			noun += "s"
		}
	}
	return thousands(float64(n), 0) + " " + noun
}

// durationValue prints microseconds in the unit that fits, with three digits: 30.0 ms.
func durationValue(us float64) string {
	digits, unit := durationParts(us)
	return digits + unit
}

// durationLabel is the same without zeros that say nothing: 30 ms.
func durationLabel(us float64) string {
	digits, unit := durationParts(us)
	return trimmed(digits) + unit
}

func durationParts(us float64) (digits, unit string) {
	switch {
	case math.IsNaN(us):
		return "–", ""
	case us >= 999_500:
		return threeDigits(us / 1e6), " s"
	case us >= 999.5:
		return threeDigits(us / 1e3), " ms"
	}
	return threeDigits(us), " µs"
}

// sizeLabel prints bytes: 64 KiB.
func sizeLabel(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.Itoa(n>>20) + " MiB"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + " KiB"
	}
	return thousands(float64(n), 0) + " B"
}

// threeDigits prints v with three digits that count.
func threeDigits(v float64) string {
	switch {
	case v >= 99.95:
		return thousands(v, 0)
	case v >= 9.995:
		return thousands(v, 1)
	}
	return thousands(v, 2)
}

// trimmed takes away zeros behind the point.
func trimmed(digits string) string {
	if strings.Contains(digits, ".") {
		digits = strings.TrimRight(strings.TrimRight(digits, "0"), ".")
	}
	return digits
}

// shortCount prints a large number for an axis: 150k.
func shortCount(v float64) string {
	switch {
	case v >= 1e6:
		return trimmed(threeDigits(v/1e6)) + "M"
	case v >= 1e3:
		return trimmed(threeDigits(v/1e3)) + "k"
	}
	return trimmed(threeDigits(v))
}

// known says that a figure that is always more than nothing was measured.
func known(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// number is a figure in the page's data, with no more digits than a run can stand for.
type number float64

// MarshalJSON prints whole numbers as they are and others with five digits.
func (n number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	if v == math.Trunc(v) || math.Abs(v) >= 1e5 {
		return strconv.AppendFloat(nil, math.Round(v), 'f', 0, 64), nil
	}
	digits := 4 - int(math.Floor(math.Log10(math.Abs(v))))
	return []byte(trimmed(strconv.FormatFloat(v, 'f', min(max(digits, 0), 9), 64))), nil
}
