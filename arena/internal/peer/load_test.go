package peer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/peer"
)

const good = `{
  "contract": 1,
  "framework": "f",
  "version": "v1.2.3",
  "language": "go",
  "needs": ["go", "pkg:zlib"],
  "debian": ["zlib1g-dev"],
  "build": [["go", "build", "-o", "{out}/f", "."]],
  "inputs": ["shared", "*.txt"],
  "peers": [
    {
      "name": "f-one",
      "settings": "s",
      "reason": "r",
      "server": ["{out}/f", "server"],
      "client": ["{out}/f", "client"],
      "codec": "c",
      "workloads": ["say", "add"],
      "conns": ["shared", "each", "fresh"],
      "payloads": [64, 581],
      "max_conns": 7,
      "window": true,
      "warmup_s": 0.5,
      "marks": ["m"]
    }
  ]
}`

// repository makes one with the given peer.json in each folder.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("shared/a", "a")
	write("a.txt", "a")
	for folder, text := range files {
		write(filepath.Join("arena/peers", folder, "peer.json"), text)
	}
	return root
}

func TestLoad(t *testing.T) {
	root := repository(t, map[string]string{"f": good, "g": strings.ReplaceAll(good, "f-one", "g-one")})
	folders, err := peer.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) != 2 || folders[0].Name != "f" || folders[1].Peers[0].Name != "g-one" {
		t.Fatalf("%+v", folders)
	}
	p := folders[0].Peers[0]
	if p.Folder != folders[0] || p.MaxConns != 7 || !p.Window || p.WarmupS != 0.5 || p.Folder.Path != filepath.Join(root, "arena/peers/f") {
		t.Errorf("%+v in %+v", p, p.Folder)
	}
	if !p.Supports(peer.Fresh) || !p.Offers(peer.Add) || !p.Takes(581) || p.Takes(65) {
		t.Errorf("%+v supports, offers or takes something else", p)
	}
	if folders, err := peer.Load(t.TempDir()); err != nil || len(folders) != 0 {
		t.Errorf("without peers: %v, %v", folders, err)
	}
}

// Each mistake is told with the file and in words that say what to do.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ name, old, now, want string }{
		{"no JSON", `"framework": "f",`, `"framework": f,`, "line 3"},
		{"unknown field", `"framework"`, `"framwork"`, `unknown field "framwork"`},
		{"unknown field of a peer", `"reason"`, `"reasons"`, `unknown field "reasons"`},
		{"something after it", "  ]\n}", "  ]\n} {}", "want exactly one object"},
		{"contract missing", `"contract": 1,`, ``, `"contract" is missing`},
		{"another contract", `"contract": 1,`, `"contract": 2,`, "this arena follows 1"},
		{"no framework", `"framework": "f",`, ``, `"framework" is missing`},
		{"no version", `"version": "v1.2.3",`, ``, `"version" is missing`},
		{"language", `"language": "go"`, `"language": "Go lang"`, `"language" is "Go lang"`},
		{"no needs", `"needs": ["go", "pkg:zlib"],`, ``, `"needs" is missing`},
		{"a path as need", `"pkg:zlib"`, `"/bin/sh"`, `"needs" holds "/bin/sh"`},
		{"an empty command", `[["go", "build", "-o", "{out}/f", "."]]`, `[[]]`, `no command at position 1`},
		{"an absolute input", `"*.txt"`, `"/etc"`, `"inputs" holds "/etc"`},
		{"an input outside", `"*.txt"`, `"../x"`, `"inputs" holds "../x"`},
		{"an input that is nothing", `"*.txt"`, `"*.nothing"`, "there is no such file"},
		{"a name in capitals", `"f-one"`, `"F One"`, `the name of peer 1 is "F One"`},
		{"no settings", `"settings": "s",`, ``, `f-one: "settings" is missing`},
		{"no reason", `"reason": "r",`, ``, `"reason" is missing: explain why`},
		{"no server", `"server": ["{out}/f", "server"],`, ``, `"server" is missing`},
		{"no client", `"client": ["{out}/f", "client"],`, `"client": [],`, `"client" is missing`},
		{"no codec", `"codec": "c",`, ``, `"codec" is missing`},
		{"no workload", `"workloads": ["say", "add"],`, ``, `"workloads" is missing: name those of say, add`},
		{"another workload", `["say", "add"]`, `["say", "sing"]`, `"workloads" holds "sing": use say, add`},
		{"a way twice", `["shared", "each", "fresh"]`, `["shared", "shared"]`, `"conns" holds "shared" twice`},
		{"without the standard payload", `[64, 581]`, `[64]`, `lacks 581`},
		{"a small payload", `[64, 581]`, `[63, 581]`, "64 is the least"},
		{"max_conns", `"max_conns": 7`, `"max_conns": -1`, `"max_conns" is -1`},
		{"max_calls_per_conn", `"max_conns": 7`, `"max_calls_per_conn": -1`, `"max_calls_per_conn" is -1`},
		{"no warm-up", `"warmup_s": 0.5`, `"warmup_s": 0`, `"warmup_s" is missing`},
		{"null", "\"peers\": [", "\"peers\": [null,", "null at position 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.now, 1)
			if text == good {
				t.Fatal("the test changes nothing")
			}
			_, err := peer.Load(repository(t, map[string]string{"f": text}))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "arena/peers/f/peer.json") {
				t.Errorf("%v, want one about %q", err, c.want)
			}
		})
	}
}

func TestTwice(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"two peers are named f-one, in f and in g":      {"f": good, "g": good},
		"the folder f-one has the name of a peer in f:": {"f": good, "f-one": strings.ReplaceAll(good, "f-one", "h")},
	} {
		if _, err := peer.Load(repository(t, files)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want one about %q", err, name)
		}
	}
	files := map[string]string{"g": good, "g-one": strings.ReplaceAll(good, "f-one", "g-one")}
	if _, err := peer.Load(repository(t, files)); err != nil {
		t.Errorf("a peer with the name of its own folder: %v", err)
	}
}
