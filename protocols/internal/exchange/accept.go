package exchange

import (
	"mime"
	"strconv"
	"strings"
)

// Prefer returns which of the offered content types a client likes best, by its Accept headers
// (RFC 9110, section 12.5.1). Of two that it likes as much, it is the one that the client names
// first, and without Accept the first one. ok is false if it accepts none.
func Prefer(accept []string, offers ...string) (best string, ok bool) {
	ranges := parseAccept(strings.Join(accept, ","))
	if len(ranges) == 0 {
		return offers[0], true
	}
	bestQuality, bestPlace := 0.0, len(ranges)
	for _, offer := range offers {
		quality, place := ranges.match(offer)
		if quality > bestQuality || quality > 0 && quality == bestQuality && place < bestPlace {
			best, bestQuality, bestPlace = offer, quality, place
		}
	}
	return best, bestQuality > 0
}

// mediaRange is an element of Accept.
type mediaRange struct {
	kind, sub string
	quality   float64
}

type mediaRanges []mediaRange

// parseAccept returns the elements of Accept that have the right form.
func parseAccept(accept string) (list mediaRanges) {
	for part := range strings.SplitSeq(accept, ",") {
		name, parameters, _ := strings.Cut(part, ";")
		kind, sub, ok := strings.Cut(strings.ToLower(strings.TrimSpace(name)), "/")
		if !ok || kind == "" || sub == "" {
			continue
		}
		list = append(list, mediaRange{kind, sub, quality(parameters)})
	}
	return list
}

// quality returns the value of the parameter q, or 1.
func quality(parameters string) float64 {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			if err != nil || !(q >= 0 && q <= 1) {
				return 0
			}
			return q
		}
	}
	return 1
}

// match returns the quality of a content type, by the most specific element, and the place of that.
func (list mediaRanges) match(offer string) (quality float64, place int) {
	kind, sub, _ := strings.Cut(offer, "/")
	specific := -1
	for i, r := range list {
		n := 0
		switch {
		case r.kind == kind && r.sub == sub:
			n = 2
		case r.kind == kind && r.sub == "*":
			n = 1
		case r.kind != "*" || r.sub != "*":
			continue
		}
		if n > specific {
			specific, quality, place = n, r.quality, i
		}
	}
	return quality, place
}

// AcceptsCoding reports whether a client accepts a coding of content, such as gzip.
func AcceptsCoding(encodings []string, coding string) bool {
	any, found := 0.0, -1.0
	for part := range strings.SplitSeq(strings.Join(encodings, ","), ",") {
		name, parameters, _ := strings.Cut(part, ";")
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case coding:
			found = quality(parameters)
		case "*":
			any = quality(parameters)
		}
	}
	if found < 0 {
		found = any
	}
	return found > 0
}

// ContentType returns a content type without parameters, in lower case, and whether its charset is
// one that can be read.
func ContentType(header string) (kind string, readable bool) {
	kind, parameters, err := mime.ParseMediaType(header)
	if err != nil {
		kind, _, _ = strings.Cut(header, ";")
		return strings.ToLower(strings.TrimSpace(kind)), header == ""
	}
	charset := strings.ToLower(parameters["charset"])
	return kind, charset == "" || charset == "utf-8" || charset == "utf8" || charset == "us-ascii"
}
