package filetransfer

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/anser-rpc/anser"
)

// Op is what somebody wants to do with a path.
type Op uint8

// The operations.
const (
	OpPut    Op = iota // write the file
	OpGet              // read the file
	OpStat             // learn size and time
	OpList             // read the names in the folder
	OpRemove           // remove the file or the empty folder
)

var opNames = [...]string{"Put", "Get", "Stat", "List", "Remove"}

// String returns the name of the operation, which is that of its method too.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// Info describes a file or folder.
type Info struct {
	Path    string    `json:"path"` // below the root, separated by "/"
	Size    int64     `json:"size"` // in bytes; 0 for what is no file
	ModTime time.Time `json:"time"`
	Dir     bool      `json:"dir,omitempty"`
	// Other says that it is neither a file nor a folder, such as a symbolic link that List met.
	Other bool `json:"other,omitempty"`
}

// Result is what a transfer came to.
type Result struct {
	Path     string   `json:"path"` // on the server
	Size     int64    `json:"size"` // of the file, in bytes
	Checksum Checksum `json:"-"`
	Sum      string   `json:"sum"`     // of the whole file, in hexadecimal digits
	Resumed  int64    `json:"resumed"` // bytes that were there before the transfer
	Breaks   int      `json:"breaks"`  // how often it went on after it was interrupted
}

// Progress tells how far a transfer is.
type Progress struct {
	Done  int64   // bytes that are there, those from before the transfer included
	Total int64   // size of the file
	Rate  float64 // bytes in a second lately
}

// What travels. The first messages of Put and Get and their last ones are JSON, what lies between are the bytes of the
// file. docs/files.md describes them.

// putHead opens a Put.
type putHead struct {
	Path     string `json:"path"`
	ID       string `json:"id"` // of the transfer
	Size     int64  `json:"size"`
	Checksum string `json:"checksum"`
	Store    string `json:"store,omitempty"` // with which the transfer began
	Sum      string `json:"sum,omitempty"`   // of the whole, when all of it was sent before
	Parents  bool   `json:"parents,omitempty"`
	New      bool   `json:"new,omitempty"`  // do not replace
	Keep     bool   `json:"keep,omitempty"` // keep what is there if the transfer fails for good
}

// putState answers it.
type putState struct {
	Store string `json:"store"`
	Have  int64  `json:"have"`           // bytes that are there
	Sum   string `json:"sum"`            // of those
	Done  bool   `json:"done,omitempty"` // the file is there already, complete
}

// putFrom says where the bytes begin that follow: at what is there, or at 0.
type putFrom struct {
	From int64 `json:"from"`
}

// ending follows the bytes, and in a Put answers that.
type ending struct {
	Sum string `json:"sum"` // of the whole
}

// getHead opens a Get.
type getHead struct {
	Path     string `json:"path"`
	Checksum string `json:"checksum"`
	Have     int64  `json:"have,omitempty"` // bytes that the client has
	Sum      string `json:"sum,omitempty"`  // of those
	Tag      string `json:"tag,omitempty"`  // of the version with which the transfer began
	Store    string `json:"store,omitempty"`
}

// getState answers it, and the bytes follow.
type getState struct {
	Store string `json:"store"`
	Size  int64  `json:"size"`
	From  int64  `json:"from"` // what the client has, or 0 if that is something else
	Tag   string `json:"tag"`
}

// entry is Info as it travels in Stat and List.
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

// maxControl is the longest message that is not the file's bytes.
const maxControl = 64 << 10

// sendJSON sends a message that is not the file's bytes.
func sendJSON(st *stream, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return st.Send(&b)
}

// recvJSON receives one.
func recvJSON(st *stream, v any) error {
	b, err := st.Recv()
	if err != nil {
		return err
	}
	return parse(*b, v)
}

func parse(b []byte, v any) error {
	if len(b) > maxControl {
		return anser.Errorf(anser.InvalidArgument, "a message of %d bytes came where at most %d belong", len(b), maxControl)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return anser.Errorf(anser.InvalidArgument, "a message cannot be read: %w: is the other side's package filetransfer of this version?", err)
	}
	return nil
}

// stream is one of a transfer, on either side.
type stream = anser.Stream[[]byte, []byte]
