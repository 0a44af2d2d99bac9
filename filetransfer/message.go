package filetransfer

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/anser-rpc/anser"
)

// Op is an operation on a path.
type Op uint8

// The operations.
const (
	OpPut    Op = iota // write the file
	OpGet              // read the file
	OpStat             // get size and time
	OpList             // list the folder
	OpRemove           // remove the file or the empty folder
)

var opNames = [...]string{"Put", "Get", "Stat", "List", "Remove"}

// String returns the name of the operation, which is also that of its method.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// Info describes a file or folder.
type Info struct {
	Path    string    `json:"path"` // below the root, separated by "/"
	Size    int64     `json:"size"` // in bytes; 0 unless it is a file
	ModTime time.Time `json:"time"`
	Dir     bool      `json:"dir,omitempty"`
	// Other means that it is neither a file nor a folder, for example a symbolic link found by
	// List.
	Other bool `json:"other,omitempty"`
}

// Result is the result of a transfer.
type Result struct {
	Path     string   `json:"path"` // on the server
	Size     int64    `json:"size"` // of the file, in bytes
	Checksum Checksum `json:"-"`
	Sum      string   `json:"sum"`     // of the whole file, in hexadecimal digits
	Resumed  int64    `json:"resumed"` // bytes that existed before the transfer
	Breaks   int      `json:"breaks"`  // how often it was interrupted and continued
}

// Progress is the progress of a transfer.
type Progress struct {
	Done  int64   // bytes transferred so far, including those of earlier attempts
	Total int64   // size of the file
	Rate  float64 // recent bytes per second
}

// The messages on the wire. The first and the last messages of Put and Get are JSON, those in
// between are the bytes of the file. docs/files.md describes them.

// putHead opens a Put.
type putHead struct {
	Path     string `json:"path"`
	ID       string `json:"id"` // of the transfer
	Size     int64  `json:"size"`
	Checksum string `json:"checksum"`
	Store    string `json:"store,omitempty"` // with which the transfer began
	Sum      string `json:"sum,omitempty"`   // of the whole file, if all of it was sent before
	Parents  bool   `json:"parents,omitempty"`
	New      bool   `json:"new,omitempty"`  // do not replace
	Keep     bool   `json:"keep,omitempty"` // keep the unfinished file after a permanent error
}

// putState answers it.
type putState struct {
	Store string `json:"store"`
	Have  int64  `json:"have"`           // number of bytes the server has
	Sum   string `json:"sum"`            // of those
	Done  bool   `json:"done,omitempty"` // the file is already complete
}

// putFrom is the offset of the following bytes: the end of the server's part, or 0.
type putFrom struct {
	From int64 `json:"from"`
}

// ending follows the bytes, and in a Put it is also the answer.
type ending struct {
	Sum string `json:"sum"` // of the whole file
}

// getHead opens a Get.
type getHead struct {
	Path     string `json:"path"`
	Checksum string `json:"checksum"`
	Have     int64  `json:"have,omitempty"` // number of bytes the client has
	Sum      string `json:"sum,omitempty"`  // of those
	Tag      string `json:"tag,omitempty"`  // of the version with which the transfer began
	Store    string `json:"store,omitempty"`
}

// getState answers it, and the bytes follow.
type getState struct {
	Store string `json:"store"`
	Size  int64  `json:"size"`
	From  int64  `json:"from"` // the client's number of bytes, or 0 if those differ from the file
	Tag   string `json:"tag"`
}

// entry is the encoding of Info in Stat and List.
type entry struct {
	Path  string
	Size  int64
	Nanos int64 // since 1970
	Dir   bool
	Other bool
}

func (e *entry) info() Info {
	return Info{Path: e.Path, Size: e.Size, ModTime: time.Unix(0, e.Nanos), Dir: e.Dir, Other: e.Other}
}

// pathRequest opens a List, and is the request of Stat and Remove.
type pathRequest struct{ Path string }

// page is a message of List.
type page struct{ Entries []entry }

// pageSize is the number of entries in a page.
const pageSize = 256

// maxControl is the maximum size of messages other than the file's bytes.
const maxControl = 64 << 10

// sendJSON sends a JSON message.
func sendJSON(st *stream, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return st.Send(&b)
}

// recvJSON receives a JSON message.
func recvJSON(st *stream, v any) error {
	b, err := st.Recv()
	if err != nil {
		return err
	}
	return parse(*b, v)
}

func parse(b []byte, v any) error {
	if len(b) > maxControl {
		return anser.Errorf(anser.InvalidArgument, "a message has %d bytes instead of at most %d", len(b), maxControl)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return anser.Errorf(anser.InvalidArgument, "a message cannot be read: %w: does the peer have this version of package filetransfer?", err)
	}
	return nil
}

// stream is the stream of a transfer, on either side.
type stream = anser.Stream[[]byte, []byte]
