//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package filetransfer

import "os"

// locks says that tryLock does something.
const locks = false

func tryLock(*os.File) (bool, error) { return true, nil }
