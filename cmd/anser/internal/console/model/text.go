package model

import "github.com/anser-rpc/anser/internal/printable"

// MaxText is the maximum length of a text from another process, in characters.
const MaxText = 400

// Text makes a text from another process printable. A longer one ends with an ellipsis.
func Text(s string) string { return printable.Short(s, MaxText) }
