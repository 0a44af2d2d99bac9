package registrytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

var documentCases = []testCase{
	{"DocumentIsSavedAndLoaded", Documents, documentIsSavedAndLoaded},
	{"DocumentStaysAfterClose", Documents, documentStaysAfterClose},
	{"SaveOfAnOldRevisionIsRefused", Documents, saveOfAnOldRevisionIsRefused},
	{"ConcurrentSavesLoseNothing", Documents, concurrentSavesLoseNothing},
	{"FollowSeesTheLastChange", Documents, followSeesTheLastChange},
	{"DocumentsAreApart", Documents, documentsAreApart},
	{"DocumentThatIsRefused", Documents, documentThatIsRefused},
	{"StoreAfterClose", Documents, storeAfterClose},
}

// store returns another registry on the fixture as a registry.Store.
func (s *suite) store() registry.Store {
	s.Helper()
	r := s.open()
	store, ok := r.(registry.Store)
	if !ok {
		s.Fatalf("%T is not a registry.Store: implement it, or pass %q in lacks", r, Documents)
	}
	return store
}

func (s *suite) load(st registry.Store, name string) registry.Document {
	s.Helper()
	ctx, cancel := s.context()
	defer cancel()
	doc, err := st.Load(ctx, name)
	if err != nil {
		s.Fatalf("Load(%q): %v", name, err)
	}
	if doc.Name != name {
		s.Fatalf("Load(%q) returned the document %q", name, doc.Name)
	}
	return doc
}

func (s *suite) save(st registry.Store, doc registry.Document) uint64 {
	s.Helper()
	ctx, cancel := s.context()
	defer cancel()
	rev, err := st.Save(ctx, doc)
	if err != nil {
		s.Fatalf("Save(%q at %d): %v", doc.Name, doc.Revision, err)
	}
	if rev <= doc.Revision {
		s.Fatalf("Save(%q) went from revision %d to %d: revisions grow", doc.Name, doc.Revision, rev)
	}
	return rev
}

// saveNext writes data over the current revision of the document.
func (s *suite) saveNext(st registry.Store, name, data string) uint64 {
	s.Helper()
	return s.save(st, registry.Document{Name: name, Revision: s.load(st, name).Revision, Data: []byte(data)})
}

func documentIsSavedAndLoaded(s *suite) {
	a, b := s.store(), s.store()
	if doc := s.load(a, "rules/arith"); doc.Revision != 0 || len(doc.Data) != 0 {
		s.Fatalf("a document that nobody saved is %+v", doc)
	}
	large := bytes.Repeat([]byte("\x00\xff{\"a\":1}\n"), registry.MaxDocument/10)
	for _, data := range [][]byte{[]byte("first"), large, {}, []byte("last")} {
		rev := s.save(a, registry.Document{Name: "rules/arith", Revision: s.load(a, "rules/arith").Revision, Data: data})
		doc := s.load(b, "rules/arith")
		if doc.Revision != rev || !bytes.Equal(doc.Data, data) {
			s.Fatalf("saved %d bytes as revision %d, loaded %d bytes at %d", len(data), rev, len(doc.Data), doc.Revision)
		}
	}
}

func documentStaysAfterClose(s *suite) {
	r := s.open()
	rev := s.saveNext(r.(registry.Store), "rules/arith", "kept")
	if err := r.Close(); err != nil {
		s.Fatal(err)
	}
	if doc := s.load(s.store(), "rules/arith"); doc.Revision != rev || string(doc.Data) != "kept" {
		s.Fatalf("after Close the document is %q at %d, want \"kept\" at %d", doc.Data, doc.Revision, rev)
	}
}

func saveOfAnOldRevisionIsRefused(s *suite) {
	a, b := s.store(), s.store()
	first := s.saveNext(a, "rules/arith", "first")
	s.save(b, registry.Document{Name: "rules/arith", Revision: first, Data: []byte("second")})
	for _, rev := range []uint64{0, first, first + 1000} {
		ctx, cancel := s.context()
		_, err := a.Save(ctx, registry.Document{Name: "rules/arith", Revision: rev, Data: []byte("lost")})
		cancel()
		if !errors.Is(err, registry.ErrConflict) {
			s.Errorf("Save at the revision %d returned %v, want ErrConflict", rev, err)
		}
	}
	ctx, cancel := s.context()
	defer cancel()
	if _, err := a.Save(ctx, registry.Document{Name: "rules/none", Revision: 7, Data: []byte("lost")}); !errors.Is(err, registry.ErrConflict) {
		s.Errorf("Save of a document that is not there at the revision 7 returned %v, want ErrConflict", err)
	}
	if doc := s.load(a, "rules/arith"); string(doc.Data) != "second" {
		s.Errorf("the document is %q, want \"second\"", doc.Data)
	}
}

func concurrentSavesLoseNothing(s *suite) {
	const writers, each = 4, 5
	var wg sync.WaitGroup
	for i := range writers {
		st := s.store()
		wg.Go(func() {
			ctx, cancel := s.context()
			defer cancel()
			for n := 0; n < each; {
				doc, err := st.Load(ctx, "list")
				if err == nil {
					doc.Data = fmt.Appendf(doc.Data, "%d.%d ", i, n)
					_, err = st.Save(ctx, doc)
				}
				switch {
				case err == nil:
					n++
				case !errors.Is(err, registry.ErrConflict):
					s.Errorf("writer %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := len(bytes.Fields(s.load(s.store(), "list").Data)); got != writers*each {
		s.Errorf("%d of %d changes are in the document", got, writers*each)
	}
}

// follow runs a Follow until the end of the test and returns its updates.
func (s *suite) follow(st registry.Store, name string) <-chan registry.Document {
	ctx, cancel := context.WithCancel(context.Background())
	updates, done := make(chan registry.Document, 1000), make(chan struct{})
	s.ending = append(s.ending, func() { cancel(); <-done })
	go func() {
		defer close(done)
		err := st.Follow(ctx, name, func(d registry.Document) { updates <- d }, func(error) {})
		if ctx.Err() == nil {
			s.Errorf("Follow(%q) ended by itself: %v", name, err)
		}
	}()
	return updates
}

func followSeesTheLastChange(s *suite) {
	a, b := s.store(), s.store()
	missing := s.follow(b, "rules/later")
	first := s.saveNext(a, "rules/arith", "0")
	updates := s.follow(b, "rules/arith")
	s.awaitDocument(updates, first, "0")
	s.awaitDocument(missing, 0, "")
	var last uint64
	for i := range 10 {
		last = s.saveNext(a, "rules/arith", fmt.Sprint(i+1))
	}
	s.awaitDocument(updates, last, "10")
	s.awaitDocument(missing, s.saveNext(a, "rules/later", "there"), "there")
}

// awaitDocument waits for the revision; the revisions before it must grow.
func (s *suite) awaitDocument(updates <-chan registry.Document, revision uint64, data string) {
	s.Helper()
	var before *registry.Document
	for limit := time.After(s.Patience); ; {
		select {
		case d := <-updates:
			if before != nil && d.Revision <= before.Revision {
				s.Fatalf("update to revision %d after %d", d.Revision, before.Revision)
			}
			if d.Revision == revision {
				if string(d.Data) != data {
					s.Fatalf("revision %d of %q is %q, want %q", d.Revision, d.Name, d.Data, data)
				}
				return
			}
			before = &d
		case <-limit:
			s.Fatalf("revision %d was not seen within %v; before it: %+v", revision, s.Patience, before)
		}
	}
}

func documentsAreApart(s *suite) {
	st := s.store()
	names := []string{"a", "a/b", "a/b/c", "ab", "a.b", "rules/a"}
	updates := s.follow(st, "a/b")
	for _, name := range names {
		s.saveNext(st, name, name)
	}
	in := numbered("arith", 1)
	r := s.open()
	s.register(r, in)
	s.await(r, "arith", in)
	s.awaitServices(r, "arith")
	for _, name := range names {
		if doc := s.load(st, name); string(doc.Data) != name {
			s.Errorf("the document %q holds %q", name, doc.Data)
		}
	}
	s.awaitDocument(updates, s.saveNext(st, "a/b", "mine"), "mine")
}

func documentThatIsRefused(s *suite) {
	st := s.store()
	ctx, cancel := s.context()
	defer cancel()
	for _, name := range []string{"", "/", "a/", "/a", "a//b", "a b", "ä", "a/b/c/d/e/f/g/h/i"} {
		if _, err := st.Save(ctx, registry.Document{Name: name}); err == nil {
			s.Errorf("Save accepted the name %q", name)
		}
		if _, err := st.Load(ctx, name); err == nil {
			s.Errorf("Load accepted the name %q", name)
		}
		if err := st.Follow(ctx, name, func(registry.Document) {}, nil); err == nil || ctx.Err() != nil {
			s.Errorf("Follow accepted the name %q", name)
		}
	}
	if _, err := st.Save(ctx, registry.Document{Name: "big", Data: make([]byte, registry.MaxDocument+1)}); !errors.Is(err, registry.ErrTooLarge) {
		s.Errorf("Save of a document over MaxDocument: %v, want %v", err, registry.ErrTooLarge)
	}
}

func storeAfterClose(s *suite) {
	r := s.open()
	st := r.(registry.Store)
	if err := r.Close(); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := s.context()
	defer cancel()
	if _, err := st.Load(ctx, "a"); !errors.Is(err, registry.ErrClosed) {
		s.Errorf("Load after Close returned %v, want ErrClosed", err)
	}
	if _, err := st.Save(ctx, registry.Document{Name: "a"}); !errors.Is(err, registry.ErrClosed) {
		s.Errorf("Save after Close returned %v, want ErrClosed", err)
	}
	if err := st.Follow(ctx, "a", func(registry.Document) {}, nil); !errors.Is(err, registry.ErrClosed) {
		s.Errorf("Follow after Close returned %v, want ErrClosed", err)
	}
}
