package contacts_test

import (
	"context"
	"log/slog"
	"net"
	"reflect"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/gen/gentest/contacts"
	"github.com/anser-rpc/anser/codec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type book struct{}

func (book) GetContactList(_ context.Context, in *contacts.UserInfo) (*contacts.Contacts, error) {
	return &contacts.Contacts{List: []contacts.UserInfo{*in}}, nil
}

func (book) Count(_ context.Context, prefix string, exact bool) (int32, error) {
	if exact {
		return 0, anser.Errorf(anser.NotFound, "%s", prefix)
	}
	return int32(len(prefix)), nil
}

func (book) Oldest(_ context.Context, n int32) ([]contacts.UserInfo, error) {
	return make([]contacts.UserInfo, n), nil
}

func TestCalls(t *testing.T) {
	silent := anser.Logger(slog.New(slog.DiscardHandler))
	s := anser.NewServer(silent)
	if err := contacts.RegisterAddressBookServer(s, book{}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	conn, err := anser.Dial(l.Addr().String(), silent)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c, ctx := contacts.NewAddressBookClient(conn), t.Context()
	user := &contacts.UserInfo{
		UserName: "ann", Age: 30, Weight: 60.5, AddressList: []string{"a", "b"}, Friends: []contacts.UserInfo{{UserName: "bob"}},
		Parent: &contacts.UserInfo{UserName: "eve", Parent: &contacts.UserInfo{Grade: 'x'}}, Picture: []uint8{0, 255}, Id: 1 << 63,
	}
	for _, opts := range [][]anser.CallOption{nil, {anser.Codec(new(codec.JSON))}} {
		list, err := c.GetContactList(ctx, user, opts...)
		if err != nil || len(list.List) != 1 || list.List[0].Parent.Parent.Grade != 'x' {
			t.Fatalf("GetContactList: %+v, %v", list, err)
		}
		if got := &list.List[0]; got.Id != user.Id || !reflect.DeepEqual(got.AddressList, user.AddressList) || !reflect.DeepEqual(got.Picture, user.Picture) || got.Friends[0].UserName != "bob" {
			t.Errorf("the user came back as %+v", got)
		}
		if n, err := c.Count(ctx, "ann", false, opts...); err != nil || n != 3 {
			t.Errorf("Count: %d, %v", n, err)
		}
		if _, err := c.Count(ctx, "ann", true, opts...); anser.CodeOf(err) != anser.NotFound {
			t.Errorf("Count of nothing: %v", err)
		}
		if all, err := c.Oldest(ctx, 2, opts...); err != nil || len(all) != 2 {
			t.Errorf("Oldest: %v, %v", all, err)
		}
	}
}
