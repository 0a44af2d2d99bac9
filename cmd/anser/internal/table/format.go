package table

import (
	"strconv"
	"strings"
	"time"
)

// Duration writes d with three digits: "87.1 µs", "1.25 ms", "12 s".
func Duration(d time.Duration) string {
	switch { // the limits account for rounding to three digits
	case d < time.Microsecond:
		return strconv.FormatInt(int64(d), 10) + " ns"
	case d < 999_500*time.Nanosecond:
		return digits(float64(d)/1e3) + " µs"
	case d < 999_500*time.Microsecond:
		return digits(float64(d)/1e6) + " ms"
	}
	return digits(d.Seconds()) + " s"
}

// digits formats f, from 1 to 1000, with three digits, without trailing zeros.
func digits(f float64) string {
	precision := 2
	switch {
	case f >= 99.95:
		precision = 0
	case f >= 9.995:
		precision = 1
	}
	return strconv.FormatFloat(f, 'f', precision, 64)
}

// Count writes n with a comma at every third digit.
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, r := range text {
		if i > 0 && r != '-' && (len(text)-i)%3 == 0 && text[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Rate formats a number per second: as an integer from 10 on.
func Rate(f float64) string {
	if f < 9.95 {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return Count(int64(f + 0.5))
}
