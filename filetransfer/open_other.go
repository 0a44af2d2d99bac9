//go:build !unix

package filetransfer

const openFlags = 0
