// Package parts is included by a contract in another package.
package parts
