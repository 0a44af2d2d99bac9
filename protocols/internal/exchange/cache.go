package exchange

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// Cacher says how replies of methods without side effects may be kept.
type Cacher map[string]string

// Revalidate is the Cache-Control of replies of which the program says nothing: a cache of the
// caller alone may keep them, and asks each time.
const Revalidate = "private, no-cache"

// Control returns the value of Cache-Control for a method.
func (c Cacher) Control(m *Method) string {
	if v := c[m.Name]; v != "" {
		return v
	}
	return Revalidate
}

// Cached sets the headers by which an answer to GET or HEAD may be kept, and reports whether the
// client has these bytes already: then it sends 304. coding is the content coding of the answer, or
// "". A reply may depend on the caller, so caches must tell them apart.
func Cached(w http.ResponseWriter, r *http.Request, data []byte, coding, control string) bool {
	sum := sha256.Sum256(data)
	tag := base64.RawURLEncoding.EncodeToString(sum[:16])
	if coding != "" {
		tag += "-" + coding
	}
	tag = `"` + tag + `"`
	h := w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", control)
	h.Add("Vary", "Authorization, Accept, Accept-Encoding")
	if !Matches(r.Header.Values("If-None-Match"), tag) {
		return false
	}
	h.Del("Content-Type")
	h.Del("Content-Length")
	w.WriteHeader(http.StatusNotModified)
	return true
}

// Matches reports whether the values of If-None-Match have an entity tag. Weak tags are compared
// like strong ones (RFC 9110, section 13.1.2).
func Matches(list []string, tag string) bool {
	tag = strings.TrimPrefix(tag, "W/")
	for part := range strings.SplitSeq(strings.Join(list, ","), ",") {
		part = strings.TrimSpace(part)
		if part == "*" || strings.TrimPrefix(part, "W/") == tag {
			return true
		}
	}
	return false
}
