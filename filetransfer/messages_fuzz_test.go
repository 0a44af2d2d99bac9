package filetransfer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/filetransfer"
)

// conversation encodes the messages of a client, each with its length in two bytes.
func conversation(messages ...[]byte) (b []byte) {
	for _, m := range messages {
		b = append(binary.LittleEndian.AppendUint16(b, uint16(len(m))), m...)
	}
	return b
}

func cutMessage(b []byte) (m, rest []byte) {
	n := min(int(binary.LittleEndian.Uint16(b)), len(b)-2)
	return b[2:][:n], b[2+n:]
}

// FuzzMessages lets a client send anything to the methods of a file server. The files that the
// server reports exist with the contents that were sent, under valid paths; nothing else is
// changed, and no unfinished file is left that should not be kept.
func FuzzMessages(f *testing.F) {
	object := func(text string) []byte { return []byte(text) }
	content := []byte("content")
	sum := sha256.Sum256(content)
	ending := object(`{"sum":"` + hex.EncodeToString(sum[:]) + `"}`)
	head := object(`{"path":"a","id":"` + someID + `","size":7,"checksum":"sha256"}`)
	f.Add(byte(0), conversation(head, object(`{"from":0}`), content, ending))
	f.Add(byte(0), conversation(head, object(`{"from":0}`), content[:3], content[3:], ending))
	f.Add(byte(0), conversation(object(`{"path":"b/c","id":"`+someID+`","size":0,"checksum":"sha256","parents":true,"keep":true}`), object(`{"from":0}`)))
	f.Add(byte(0), conversation(object(`{"path":"../secret","id":"`+someID+`","size":7,"checksum":"sha256"}`), object(`{"from":0}`), content, ending))
	f.Add(byte(1), conversation(object(`{"path":"there","checksum":"sha256"}`)))
	f.Add(byte(1), conversation(object(`{"path":"there","checksum":"crc32c","have":3,"sum":"00","tag":"x","store":"y"}`)))
	f.Add(byte(2), conversation(object(`{"Path":""}`)))
	f.Add(byte(3), conversation(object(`{"Path":"there"}`)))
	f.Fuzz(func(t *testing.T, method byte, data []byte) {
		if len(data) > 16<<10 {
			return
		}
		s := newSite(t)
		secret := filepath.Join(filepath.Dir(s.dir), "secret")
		write(t, secret, []byte("secret"))
		s.write("there", content)
		st, err := anser.Open[[]byte, []byte](within(t), s.client, []string{"File.Put", "File.Get", "File.List", "File.Stat"}[method%4])
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		for len(data) >= 2 {
			var m []byte
			m, data = cutMessage(data)
			if st.Send(&m) != nil {
				break
			}
		}
		st.CloseSend()
		var last []byte
		for err == nil {
			var m *[]byte
			if m, err = st.Recv(); err == nil {
				last = bytes.Clone(*m)
			}
		}
		if n := s.server.Stats().Panics; n != 0 {
			t.Errorf("%d panics", n)
		}
		want(t, secret, []byte("secret"))
		var said struct{ Sum string }
		success := err == io.EOF && method%4 == 0 && json.Unmarshal(last, &said) == nil && said.Sum != ""
		found := make(map[string][]byte)
		filepath.WalkDir(s.dir, func(p string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel(s.dir, p)
			name = filepath.ToSlash(name)
			if err == nil && name != "." && !strings.HasPrefix(filepath.Base(p), ".anser-") {
				if filetransfer.CheckPath(name) != nil {
					t.Errorf("there is %q, which is not allowed", name)
				}
				if b, err := os.ReadFile(p); err == nil {
					found[name] = b
				}
			}
			return nil
		})
		if success && len(said.Sum) == 2*sha256.Size && !slices.ContainsFunc(slices.Collect(maps.Values(found)), func(b []byte) bool {
			sum := sha256.Sum256(b)
			return hex.EncodeToString(sum[:]) == said.Sum
		}) {
			t.Errorf("the server says that it has %s, but there is %q", said.Sum, found)
		}
		if !success && (len(found) != 1 || !bytes.Equal(found["there"], content)) {
			t.Errorf("after %v there is %q", err, found)
		}
	})
}
