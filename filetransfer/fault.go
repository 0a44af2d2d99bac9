package filetransfer

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"github.com/anser-rpc/anser"
)

// windowsDiskFull is ERROR_DISK_FULL, which package syscall does not define.
const windowsDiskFull = syscall.Errno(112)

// explain converts an error of the operating system about a path into the error for the client.
// Its text contains the path below the root and nothing else about the server.
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
	case text == "path escapes from parent": // os.Root exports no error for it
		code, text = anser.PermissionDenied, "it leads out of the served folder"
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
