package sample

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"

	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/test/protocols/librarypb"
)

// Library answers with what it was asked.
type Library struct {
	librarypb.UnimplementedLibraryServer
	// Calls counts the calls.
	Calls atomic.Int64
}

func (l *Library) GetBook(_ context.Context, in *librarypb.GetBookRequest) (*librarypb.Book, error) {
	l.Calls.Add(1)
	if strings.HasSuffix(in.Name, "missing") {
		return nil, anser.Errorf(anser.NotFound, "there is no book %s", in.Name)
	}
	return &librarypb.Book{Name: in.Name, Title: "T"}, nil
}

func (l *Library) ListBooks(_ context.Context, in *librarypb.ListBooksRequest) (*librarypb.ListBooksResponse, error) {
	l.Calls.Add(1)
	request, err := protojson.Marshal(in)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer // without the white space that protobuf's JSON adds by chance
	err = json.Compact(&compact, request)
	return &librarypb.ListBooksResponse{Request: compact.String()}, err
}

func (l *Library) CreateBook(_ context.Context, in *librarypb.CreateBookRequest) (*librarypb.Book, error) {
	l.Calls.Add(1)
	in.Book.Name = in.Parent + "/books/new"
	return in.Book, nil
}

func (l *Library) UpdateBook(_ context.Context, in *librarypb.UpdateBookRequest) (*librarypb.Book, error) {
	l.Calls.Add(1)
	in.Book.Labels = map[string]string{"mask": strings.Join(in.UpdateMask.GetPaths(), ",")}
	return in.Book, nil
}

func (l *Library) DeleteBook(context.Context, *librarypb.GetBookRequest) (*emptypb.Empty, error) {
	l.Calls.Add(1)
	return new(emptypb.Empty), nil
}

func (l *Library) Archive(_ context.Context, in *librarypb.GetBookRequest) (*librarypb.Book, error) {
	l.Calls.Add(1)
	return &librarypb.Book{Name: in.Name}, nil
}

func (l *Library) Watch(_ context.Context, in *librarypb.ListBooksRequest, out anser.Sender[librarypb.Book]) error {
	l.Calls.Add(1)
	for _, name := range []string{"a", "b"} {
		if err := out.Send(&librarypb.Book{Name: in.Shelf + name}); err != nil {
			return err
		}
	}
	return nil
}

func (l *Library) Import(_ context.Context, in anser.Receiver[librarypb.CreateBookRequest]) (*librarypb.ListBooksResponse, error) {
	l.Calls.Add(1)
	out := new(librarypb.ListBooksResponse)
	for m, err := range in.All() {
		if err != nil {
			return nil, err
		}
		m.Book.Name = m.Parent
		out.Books = append(out.Books, m.Book)
	}
	return out, nil
}

func (l *Library) Cover(_ context.Context, in *librarypb.GetBookRequest) (*httpbody.HttpBody, error) {
	l.Calls.Add(1)
	return &httpbody.HttpBody{ContentType: "image/png", Data: []byte("PNG of " + in.Name)}, nil
}

func (l *Library) SetCover(_ context.Context, in *librarypb.SetCoverRequest) (*librarypb.Book, error) {
	l.Calls.Add(1)
	return &librarypb.Book{Name: in.Name, Title: in.Cover.ContentType + " " + string(in.Cover.Data)}, nil
}

func (l *Library) Count(context.Context, *librarypb.ListBooksRequest) (*librarypb.ListBooksResponse, error) {
	l.Calls.Add(1)
	return new(librarypb.ListBooksResponse), nil
}
