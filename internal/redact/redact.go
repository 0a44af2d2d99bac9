// Package redact takes credentials out of what logs, observers and pages show.
package redact

import "strings"

// Target returns the target of a client without the user and the password in it. It need not be a
// valid URL: targets list several hosts, and passwords have bytes that should have been escaped.
func Target(target string) string { return without(target, "") }

// URLs returns a text without the users and passwords of the URLs in it, which spaces and quotes
// end.
func URLs(text string) string { return without(text, " \t\r\n\"'<>") }

func without(text, ends string) string {
	if !strings.Contains(text, "@") {
		return text
	}
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(text, "://")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		b.WriteString("://")
		url := after
		if end := strings.IndexAny(after, ends); end >= 0 {
			url = after[:end]
		}
		text = after[user(url):]
	}
}

// user returns the length of the user and password, with the @, at the beginning of a URL without
// its scheme.
func user(url string) int {
	authority := url
	if end := strings.IndexAny(url, "/?#"); end >= 0 {
		authority = url[:end]
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		return at + 1
	}
	if colon := strings.LastIndexByte(authority, ':'); colon >= 0 && strings.Trim(authority[colon+1:], "0123456789]") != "" && !strings.HasPrefix(authority, "[") {
		return strings.LastIndexByte(url, '@') + 1 // no port, but a password with one of "/?#" in it
	}
	return 0
}
