package filetransfer

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"github.com/anser-rpc/anser"
)

// windowsDiskFull is ERROR_DISK_FULL, for which package syscall has no name.
const windowsDiskFull = syscall.Errno(112)

// explain turns what the operating system said about a path into the error that the client gets. The text names
// the path below the root and nothing else of the server's.
func explain(err error, doing, path string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*anser.Error](err); ok {
		return err
	}
	cause := err
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		cause = e.Err
	}
	var links *os.LinkError
	if errors.As(err, &links) {
		cause = links.Err
	}
	code, text := anser.Internal, cause.Error()
	switch {
	case text == "path escapes from parent": // os.Root has no name for it
		code, text = anser.PermissionDenied, "it leads out of the folder that is served"
	case errors.Is(cause, fs.ErrNotExist):
		code = anser.NotFound
	case errors.Is(cause, fs.ErrExist), errors.Is(cause, syscall.ENOTEMPTY):
		code = anser.AlreadyExists
	case errors.Is(cause, fs.ErrPermission), errors.Is(cause, syscall.EROFS):
		code = anser.PermissionDenied
	case diskFull(cause):
		code = anser.ResourceExhausted
	case errors.Is(cause, syscall.EISDIR), errors.Is(cause, syscall.ENOTDIR):
		code = anser.FailedPrecondition
	case errors.Is(cause, syscall.ENAMETOOLONG), errors.Is(cause, syscall.ELOOP):
		code = anser.InvalidArgument
	}
	return anser.Errorf(code, "%s %q: %s", doing, path, text)
}

func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || runtime.GOOS == "windows" && errors.Is(err, windowsDiskFull)
}
