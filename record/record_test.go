package record_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/record"
)

type login struct {
	User     string
	Password string
	Pin      int `json:"pin" anser:"secret"`
}

type session struct {
	User  string
	Token string
}

// serve runs a server that a recorder records, and returns a client of it.
func serve(t testing.TB, r *record.Recorder) *anser.Client {
	t.Helper()
	silent := anser.Logger(slog.New(slog.DiscardHandler))
	s := anser.NewServer(r.Option(), silent)
	anser.Handle(s, "Auth.Login", func(_ context.Context, in *login) (*session, error) {
		if in.User == "" {
			return nil, anser.Errorf(anser.NotFound, "there is no user with the password %s", in.Password)
		}
		return &session{in.User, "t-" + in.Password}, nil
	})
	anser.HandleOneway(s, "Auth.Note", func(context.Context, *login) error { return nil })
	anser.Handle(s, "Auth.Bytes", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	anser.Handle(s, "Auth.Panic", func(context.Context, *login) (*session, error) { panic("on purpose") })
	anser.HandleStream(s, "Auth.Watch", func(_ context.Context, st *anser.Stream[session, login]) error {
		for in, err := range st.All() {
			if err != nil {
				return err
			}
			if err := st.Send(&session{in.User, in.Password}); err != nil {
				return err
			}
		}
		return nil
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-served })
	c, err := anser.Dial(l.Addr().String(), silent, anser.NoSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func newRecorder(t testing.TB, o record.Options) *record.Recorder {
	t.Helper()
	r, err := record.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.Background()) })
	return r
}

// calls closes the recorder and returns what it has recorded.
func calls(t testing.TB, r *record.Recorder, dir string, f record.Filter) (list []*record.Call) {
	t.Helper()
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	in, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for c, err := range in.Calls(f) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "calls")
	r := newRecorder(t, record.Options{Dir: dir, Share: 1, Metadata: []string{"tenant"}})
	c := serve(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	ctx = anser.WithMetadata(ctx, anser.Metadata{"tenant": "blue", "authorization": "hidden"})
	if _, err := anser.Call[session](ctx, c, "Auth.Login", &login{"ann", "hidden", 4711}); err != nil {
		t.Fatal(err)
	}
	if _, err := anser.Call[session](ctx, c, "Auth.Login", &login{"", "hidden", 4711}); anser.CodeOf(err) != anser.NotFound {
		t.Fatal(err)
	}
	if _, err := anser.Call[session](ctx, c, "Auth.Panic", &login{}); anser.CodeOf(err) != anser.Internal {
		t.Fatal(err)
	}
	if _, err := anser.Call[[]byte](ctx, c, "Auth.Bytes", new([]byte)); err != nil {
		t.Fatal(err)
	}
	st, err := anser.Open[login, session](ctx, c, "Auth.Watch")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Send(&login{"bob", "hidden", 4711}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Recv(); err != nil {
		t.Fatal(err)
	}
	st.CloseSend()
	if _, err := st.Recv(); err != io.EOF {
		t.Fatal(err)
	}
	list := calls(t, r, dir, record.Filter{})
	var got []string
	for _, c := range list {
		if c.At.Before(began.Add(-time.Second)) || c.At.After(time.Now().Add(time.Second)) || c.Took <= 0 || c.Timeout <= 0 || c.Timeout > time.Minute {
			t.Errorf("%s at %s took %s of %s", c.Method, c.At, c.Took, c.Timeout)
		}
		if c.Metadata["tenant"] != "blue" || len(c.Metadata) != 1 {
			t.Errorf("metadata %v", c.Metadata)
		}
		var messages []string
		for _, m := range c.Messages {
			messages = append(messages, fmt.Sprint(m.Sent, string(m.JSON)))
		}
		got = append(got, fmt.Sprintf("%s %s %s %s %v %s %s", c.Method, c.Codec, c.Request, c.Reply, messages, c.Code, c.Redacted))
	}
	want := []string{
		`Auth.Login msgpack {"User":"ann","Password":"redacted","pin":0} {"User":"ann","Token":"redacted"} [] ok [request.Password request.pin reply.Token]`,
		`Auth.Login msgpack {"User":"","Password":"redacted","pin":0}  [] not found [request.Password request.pin]`,
		`Auth.Panic msgpack {"User":"","Password":"","pin":0}  [] internal [request.Password request.pin]`,
		`Auth.Watch    [false{"User":"bob","Password":"redacted","pin":0} true{"User":"bob","Token":"redacted"}] ok [received.Password received.pin sent.Token]`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if s := r.Stats(); s.Recorded != 4 || s.Unreadable != 1 || s.Dropped+s.Failed+s.TooLarge != 0 {
		t.Errorf("%+v", s)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	info, err := os.Stat(names[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if info.Size() != r.Stats().Bytes+18 {
		t.Errorf("the file has %d bytes, %d were counted", info.Size(), r.Stats().Bytes)
	}
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]record.Options{
		"no Dir":                   {},
		"a Share of 2":             {Dir: "x", Share: 2},
		"a Share of -1":            {Dir: "x", Share: -1},
		"a PerSecond of":           {Dir: "x", PerSecond: -1},
		"a MaxBytes of 1":          {Dir: "x", MaxBytes: 1},
		"a MaxMessage of ":         {Dir: "x", MaxMessage: 1 << 30},
		"make the folder":          {Dir: "/dev/null/x"},
		"an empty key in Metadata": {Dir: "x", Metadata: []string{"tenant", ""}},
		`the name "" in Secret has an empty part`:        {Dir: "x", Secret: []string{"pin", ""}},
		`the name "card." in Secret has an empty part`:   {Dir: "x", Secret: []string{"card."}},
		`the name "_" in Public is empty`:                {Dir: "x", Public: []string{"_"}},
		"the key \"X-Api-Key\" of Metadata looks secret": {Dir: "x", Metadata: []string{"tenant", "X-Api-Key"}},
		"the key \"pin\" of Metadata looks secret":       {Dir: "x", Metadata: []string{"pin"}, Secret: []string{"pin"}},
	} {
		if _, err := record.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestChoice(t *testing.T) {
	dir := t.TempDir()
	r := newRecorder(t, record.Options{Dir: dir, Share: 1, PerSecond: 3, MaxMessage: 60, Methods: func(m string) bool { return m == "Auth.Login" }})
	c := serve(t, r)
	began := time.Now()
	if _, err := anser.Call[session](t.Context(), c, "Auth.Login", &login{User: strings.Repeat("x", 100)}); err != nil {
		t.Fatal(err)
	}
	if _, err := anser.Call[[]byte](t.Context(), c, "Auth.Bytes", new([]byte)); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := anser.Call[session](t.Context(), c, "Auth.Login", &login{User: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	seconds := int64(time.Since(began)/time.Second) + 2 // of the recorder's clock that may have begun
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := r.Stats(); s.TooLarge != 1 || s.Recorded < 2 || s.Recorded > 3*seconds || s.Unreadable != 0 {
		t.Errorf("%+v within %d seconds", s, seconds)
	}
}

// The oldest files go when there are too many.
func TestRing(t *testing.T) {
	dir := t.TempDir()
	var last record.Stats
	for range 2 { // the second recorder goes on with the files of the first
		r := newRecorder(t, record.Options{Dir: dir, Share: 1, PerSecond: 1 << 20, MaxBytes: 1 << 20})
		c := serve(t, r)
		for n := range 300 {
			in := &login{User: noise(n, 8000)}
			if _, err := anser.Call[session](t.Context(), c, "Auth.Login", in); err != nil {
				t.Fatal(err)
			}
		}
		r.Close(t.Context())
		last = r.Stats()
	}
	if last.Recorded != 300 {
		t.Fatalf("%+v", last)
	}
	in, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	index := in.Index()
	if index.Bytes > 1<<20+300<<10 || index.Files < 2 || index.Calls < 50 || index.Calls >= 600 || index.Damaged != nil || index.Methods["Auth.Login"] != index.Calls {
		t.Errorf("%+v", index)
	}
	n, before := 0, time.Time{}
	for c, err := range in.Calls(record.Filter{From: index.First.Add(1)}) {
		if err != nil || c.At.Before(before) {
			t.Fatalf("%v, %v after %v", err, c.At, before)
		}
		before = c.At
		n++
	}
	if n != index.Calls-1 {
		t.Errorf("%d calls without the first one of %d", n, index.Calls)
	}
}

// noise returns a text that hardly shrinks.
func noise(seed, n int) string {
	b := make([]byte, n)
	x := uint64(seed)*2654435761 + 1
	for i := range b {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[x>>58]
	}
	return string(b)
}

// What is damaged is left out, and the rest is read.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		r := newRecorder(t, record.Options{Dir: dir, Share: 1})
		c := serve(t, r)
		if _, err := anser.Call[session](t.Context(), c, "Auth.Login", &login{User: "x"}); err != nil {
			t.Fatal(err)
		}
		r.Close(t.Context())
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	var whole []byte // one file with three blocks
	var ends []int
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			text = text[18:]
		}
		whole = append(whole, text...)
		ends = append(ends, len(whole))
	}
	name := filepath.Join(t.TempDir(), "x.anrec")
	read := func(text []byte) (calls int, errs int, damaged []string) {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := record.Open(name)
		if err != nil {
			return 0, -1, nil
		}
		defer in.Close()
		for _, err := range in.Calls(record.Filter{}) {
			if err != nil {
				errs++
			} else {
				calls++
			}
		}
		return calls, errs, in.Index().Damaged
	}
	for cut := range len(whole) {
		want := 0
		for _, end := range ends {
			if cut >= end {
				want++
			}
		}
		atEdge := slices.Contains(ends, cut) || cut == 18
		if n, errs, damaged := read(whole[:cut]); n != want || errs != 0 || (len(damaged) == 0) != atEdge {
			t.Fatalf("cut at %d: %d calls, want %d, %d errors, %q", cut, n, want, errs, damaged)
		}
	}
	for at := 18; at < len(whole); at++ {
		changed := slices.Clone(whole)
		changed[at] ^= 0x10
		if n, errs, damaged := read(changed); n != 2 || errs+len(damaged) != 1 {
			t.Fatalf("changed at %d: %d calls, %d errors, %q", at, n, errs, damaged)
		}
	}
	if _, errs, _ := read([]byte("something else that is longer")); errs != -1 {
		t.Error("a file of another kind is read")
	}
}

func TestOpenErrors(t *testing.T) {
	for want, path := range map[string]string{"no files of a recording": t.TempDir(), "no such file": filepath.Join(t.TempDir(), "x")} {
		if _, err := record.Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := record.Open(); err == nil {
		t.Error("nothing can be opened")
	}
}

// A named pipe is not waited for.
func TestOpenPipe(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "calls-00000001.anrec"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Open(dir); err == nil || !strings.Contains(err.Error(), "is not a regular file: name the files") {
		t.Error(err)
	}
}

// Methods with long names do not make a head that is too long to be read.
func TestManyLongNames(t *testing.T) {
	dir := t.TempDir()
	r := newRecorder(t, record.Options{Dir: dir, Share: 1, PerSecond: 1 << 20})
	silent := anser.Logger(slog.New(slog.DiscardHandler))
	s := anser.NewServer(r.Option(), silent)
	const methods = 500
	for n := range methods {
		anser.Handle(s, fmt.Sprintf("A.%s%d", strings.Repeat("<", 240), n), func(context.Context, *login) (*session, error) { return new(session), nil })
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() { s.Close(); <-served }()
	c, err := anser.Dial(l.Addr().String(), silent, anser.NoSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for n := range methods {
		if _, err := anser.Call[session](t.Context(), c, fmt.Sprintf("A.%s%d", strings.Repeat("<", 240), n), &login{}); err != nil {
			t.Fatal(err)
		}
	}
	if list := calls(t, r, dir, record.Filter{}); len(list) != methods {
		t.Errorf("%d calls of %d are read", len(list), methods)
	}
}

// FuzzOpen reads any file as a recording: it ends, with calls that programs can use.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	r := newRecorder(f, record.Options{Dir: dir, Share: 1})
	c := serve(f, r)
	for _, name := range []string{"x", "y"} {
		if _, err := anser.Call[session](f.Context(), c, "Auth.Login", &login{User: name}); err != nil {
			f.Fatal(err)
		}
	}
	r.Close(context.Background())
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	text, err := os.ReadFile(names[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(append(slices.Clone(text), text[18:]...))
	f.Add(text[:len(text)-1])
	f.Add([]byte("anser recording 1\n"))
	name := filepath.Join(f.TempDir(), "x.anrec")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := record.Open(name)
		if err != nil {
			return
		}
		defer in.Close()
		n := 0
		for c, err := range in.Calls(record.Filter{}) {
			if err != nil {
				continue
			}
			if n++; c.Method == "" || !c.Stream && !json.Valid(c.Request) || c.Took < 0 {
				t.Fatalf("%+v", c)
			}
		}
		if n > len(text)<<12 {
			t.Fatalf("%d calls in %d bytes", n, len(text))
		}
	})
}
