package protocols_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/test/protocols/librarypb"
	"github.com/anser-rpc/anser/internal/test/protocols/sample"
	"github.com/anser-rpc/anser/protocols"
)

// patientLibrary takes longer for a call than a body may take to arrive.
type patientLibrary struct{ *sample.Library }

func (patientLibrary) think(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(5 * time.Minute):
		return nil
	}
}

func (l patientLibrary) GetBook(ctx context.Context, in *librarypb.GetBookRequest) (*librarypb.Book, error) {
	if err := l.think(ctx); err != nil {
		return nil, err
	}
	return l.Library.GetBook(ctx, in)
}

func (l patientLibrary) DeleteBook(ctx context.Context, in *librarypb.GetBookRequest) (*emptypb.Empty, error) {
	if err := l.think(ctx); err != nil {
		return nil, err
	}
	return l.Library.DeleteBook(ctx, in)
}

func (l patientLibrary) Archive(ctx context.Context, in *librarypb.GetBookRequest) (*librarypb.Book, error) {
	if err := l.think(ctx); err != nil {
		return nil, err
	}
	return l.Library.Archive(ctx, in)
}

func (l patientLibrary) Watch(ctx context.Context, in *librarypb.ListBooksRequest, out anser.Sender[librarypb.Book]) error {
	if err := l.think(ctx); err != nil {
		return err
	}
	return l.Library.Watch(ctx, in, out)
}

// A request without a body has no time in which its body must arrive: over HTTP/1.1, net/http waits
// for the end of the client while the handler runs, and a time for reading would end the call.
func TestLongCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(ansertest.Network)
		s := anser.NewServer(protocols.All(), anser.NoSignals(), anser.Logger(slog.New(slog.DiscardHandler)))
		librarypb.RegisterLibraryServer(s, patientLibrary{new(sample.Library)})
		l := network.Listen("a:1")
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(l) }()
		for version, c := range versions(t) {
			c.DialContext = network.Dial
			for request, row := range map[string]struct{ body, accept, answer string }{
				"GET /v1/shelves/1/books/2":             {answer: `{"name":"shelves/1/books/2","title":"T"}`},
				"DELETE /v1/shelves/1/books/2":          {answer: `{}`},
				"POST /v1/shelves/1/x/2:archive":        {answer: `{"name":"shelves/1/x/2"}`},
				"POST /test.library.v1.Library.GetBook": {body: `{"name":"n"}`, answer: `{"name":"n","title":"T"}`},
				"POST /test.library.v1.Library/GetBook": {body: `{"name":"n"}`, answer: `{"name":"n","title":"T"}`},
				"GET /test.library.v1.Library/GetBook?connect=v1&encoding=json&message=%7B%22name%22%3A%22n%22%7D": {answer: `{"name":"n","title":"T"}`},
				"GET /v1/shelves/7/books:watch": {accept: "text/event-stream", answer: `"7b"`},
			} {
				method, path, _ := strings.Cut(request, " ")
				accept := cmp.Or(row.accept, "application/json")
				resp, got := ask(t, c, method, "a:1", path, row.body, "Accept", accept)
				if resp.StatusCode != http.StatusOK || compact(got) != row.answer && !(row.accept != "" && strings.Contains(got, row.answer)) {
					t.Errorf("%s %s: %d %s", version, request, resp.StatusCode, got)
				}
			}
		}
		s.Close()
		if err := <-ended; !errors.Is(err, anser.ErrServerClosed) {
			t.Error(err)
		}
	})
}
