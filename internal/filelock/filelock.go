// Package filelock locks files against other programs that lock them, too.
package filelock
