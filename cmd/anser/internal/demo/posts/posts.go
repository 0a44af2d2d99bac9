// Package posts is the demo's service that serves a list of posts.
package posts

import (
	"context"
	"time"

	"github.com/anser-rpc/anser"
)

// Service is the name under which instances are registered.
const Service = "posts"

// Query lists the posts of a type.
const Query anser.Method[Args, Reply] = "Posts.Query"

// Args selects the posts.
type Args struct {
	PostType string `json:"posttype" msgpack:"posttype"` // empty: all
}

// Reply holds the posts, the newest first.
type Reply struct {
	Posts []Post `json:"posts" msgpack:"posts"`
}

// Post is a recommended link.
type Post struct {
	PostID      string    `json:"id" msgpack:"id"`
	PostType    string    `json:"ptype" msgpack:"ptype"`
	Title       string    `json:"title" msgpack:"title"`
	URL         string    `json:"url" msgpack:"url"`
	Domain      string    `json:"domain" msgpack:"domain"`
	ShortURL    string    `json:"surl" msgpack:"surl"`
	Description string    `json:"desc" msgpack:"desc"`
	LikeCount   int       `json:"like" msgpack:"like"`
	ImageURL    string    `json:"imgurl" msgpack:"imgurl"`
	RecommendBy string    `json:"-" msgpack:"-"`
	Tags        string    `json:"tags" msgpack:"tags"`
	State       int       `json:"-" msgpack:"-"`
	Timestamp   time.Time `json:"ts" msgpack:"ts"`
}

// Posts serves the list.
type Posts struct{}

// Query returns the posts of the type that in names.
func (*Posts) Query(_ context.Context, in *Args) (*Reply, error) {
	out := new(Reply)
	for _, p := range all {
		if p.State == published && (in.PostType == "" || p.PostType == in.PostType) {
			out.Posts = append(out.Posts, p)
		}
	}
	if len(out.Posts) == 0 {
		return nil, anser.Errorf(anser.NotFound, "there are no posts of the type %q: golang and rpc have some", in.PostType)
	}
	return out, nil
}

// Register serves the method on s.
func Register(s *anser.Server) error { return s.Register(new(Posts), anser.Idempotent()) }

const published = 1

func post(id, ptype, title, path, desc, tags string, like int, day int) Post {
	return Post{
		PostID: id, PostType: ptype, Title: title,
		URL: "https://blog.example.org/" + path, Domain: "blog.example.org", ShortURL: "https://s.example.org/" + id,
		Description: desc, LikeCount: like, ImageURL: "https://blog.example.org/" + path + ".png",
		RecommendBy: "editor", Tags: tags, State: published,
		Timestamp: time.Date(2026, time.March, day, 9, 30, 0, 0, time.UTC),
	}
}

var all = []Post{
	post("p5", "rpc", "A deadline is a budget", "deadline-budget",
		"Why the time that is left travels with a call, and not the time of day.", "deadlines,clocks", 87, 21),
	post("p4", "golang", "One write for sixty calls", "one-write",
		"How callers that share a connection share its system calls too.", "performance,sockets", 142, 17),
	post("p3", "rpc", "What a failed call should tell you", "outcomes",
		"Not sent, refused, unknown, executed: four words that decide about a retry.", "errors,retries", 203, 11),
	post("p2", "golang", "Contexts without a goroutine", "contexts",
		"A context of one's own can be as cheap as a struct.", "context,allocations", 61, 6),
	post("p1", "golang", "Draining without an error", "draining",
		"A server says that it goes, and its callers are elsewhere before it does.", "deployment", 118, 2),
}
