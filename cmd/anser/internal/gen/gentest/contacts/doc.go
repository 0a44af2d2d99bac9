// Package contacts is generated from a contract in kiss-rpc's language.
package contacts
