package redact_test

import (
	"testing"

	"github.com/anser-rpc/anser/internal/redact"
)

func TestTarget(t *testing.T) {
	for target, want := range map[string]string{
		"":                                    "",
		"127.0.0.1:80":                        "127.0.0.1:80",
		"tcp://a:1,b:2":                       "tcp://a:1,b:2",
		"redis://user:secret@a:1/x":           "redis://a:1/x",
		"redis://user:secret@a:1,b:2/x":       "redis://a:1,b:2/x",
		"redis://a:1,user:secret@b:2/x":       "redis://b:2/x",
		"http://user:secret@a:1,b:2":          "http://a:1,b:2",
		"redis://:secret@a:1/x":               "redis://a:1/x",
		"redis://token@a:1/x":                 "redis://a:1/x",
		"redis://user:sec/ret@a:1/x":          "redis://a:1/x",
		"redis://user:sec ret@a:1/x":          "redis://a:1/x",
		"redis://user:sec,r@t@a:1/x":          "redis://a:1/x",
		"redis://user:sec#ret?@a:1/x":         "redis://a:1/x",
		"etcd://user:a%40b@[::1]:1,[::2]:2/x": "etcd://[::1]:1,[::2]:2/x",
		"unix:///run/a@b":                     "unix:///run/a@b",
		"ws://a:1/path@x":                     "ws://a:1/path@x",
		"ws://[::1]/path@x":                   "ws://[::1]/path@x",
		"no URL, user@host":                   "no URL, user@host",
	} {
		if got := redact.Target(target); got != want {
			t.Errorf("%s is %s, want %s", target, got, want)
		}
	}
}

func TestURLs(t *testing.T) {
	for text, want := range map[string]string{
		`dial "redis://u:secret@a:1,b:2/x": mail me@example.org`: `dial "redis://a:1,b:2/x": mail me@example.org`,
		"http://u:p,w@a and https://v:q/w@b/c, at d@e":           "http://a and https://b/c, at d@e",
		"see https://example.org:443/@name":                      "see https://example.org:443/@name",
		"http://a:1,redis://u:secret@b:2":                        "http://a:1,redis://b:2",
	} {
		if got := redact.URLs(text); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// Whatever a text is, nothing is added to it, and what it had is gone the first time.
func FuzzURLs(f *testing.F) {
	f.Add("redis://u:secret@a:1,b:2/x http://v:w/@c")
	f.Add("://@://@")
	f.Fuzz(func(t *testing.T, text string) {
		once := redact.URLs(text)
		if len(once) > len(text) {
			t.Errorf("%q is %q", text, once)
		}
		redact.Target(text)
	})
}
