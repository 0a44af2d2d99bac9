package report

import (
	"encoding/json"
	"math"
	"testing"
)

func TestNumbersAsPeopleReadThem(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{thousands(0, 0), "0"},
		{thousands(999, 0), "999"},
		{thousands(1000, 0), "1,000"},
		{thousands(180295.4, 0), "180,295"},
		{thousands(1234567.891, 2), "1,234,567.89"},
		{thousands(-1234, 0), "-1,234"},
		{thousands(-0.001, 1), "0.0"},
		{counted(1, "caller"), "1 caller"},
		{counted(2, "client process"), "2 client processes"},
		{counted(5000, "caller"), "5,000 callers"},
		{durationValue(4.5), "4.50 µs"},
		{durationValue(709), "709 µs"},
		{durationValue(999.7), "1.00 ms"},
		{durationValue(30_000), "30.0 ms"},
		{durationLabel(30_000), "30 ms"},
		{durationLabel(2_500_000), "2.5 s"},
		{durationLabel(math.NaN()), "–"},
		{sizeLabel(64), "64 B"},
		{sizeLabel(65_536), "64 KiB"},
		{sizeLabel(1_048_576), "1 MiB"},
		{sizeLabel(1500), "1,500 B"},
		{shortCount(150_000), "150k"},
		{shortCount(2_500_000), "2.5M"},
		{shortCount(200), "200"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// Whole numbers keep all digits, others five.
func TestNumbersOfThePage(t *testing.T) {
	for v, want := range map[number]string{
		0: "0", 581_234_567: "581234567", 1_000_000: "1000000", 180_295.43: "180295", 12_340.04: "12340", 10.3456789: "10.346",
		0.123456789: "0.12346", 0.00000001: "0.00000001", -2.5: "-2.5", number(math.Inf(1)): "null",
	} {
		got, err := json.Marshal(v)
		if err != nil || string(got) != want {
			t.Errorf("%v is %s, want %s (%v)", float64(v), got, want, err)
		}
	}
	if got, err := json.Marshal(number(math.NaN())); err != nil || string(got) != "null" {
		t.Errorf("NaN is %s (%v)", got, err)
	}
}
