package access

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// Limits of the file with the users.
const (
	MinPassword = 10 // bytes
	maxPassword = 72 // bytes that bcrypt uses
	maxUsers    = 10_000
	maxFile     = 8 << 20 // bytes
	lookAgain   = time.Second
	cost        = 12 // of bcrypt: about 250 ms
)

// account is a user of the file.
type account struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
	Hash string `json:"hash"` // of bcrypt
}

// Users is a file of users with hashes of their passwords. It is read again when it has changed,
// so that a removed user, or one with a new password, is logged out. Its methods are safe for
// concurrent use.
type Users struct {
	file string

	mu     sync.Mutex // guards the fields below
	list   []account
	decoy  []byte // hash that passwords of unknown users are compared with
	stat   fs.FileInfo
	looked time.Time
}

// OpenUsers reads the file of users.
func OpenUsers(file string) (*Users, error) {
	u := &Users{file: file}
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.readLocked(); err != nil {
		return nil, err
	}
	return u, nil
}

func (u *Users) readLocked() error {
	stat, err := os.Stat(u.file)
	if err != nil {
		return fmt.Errorf("the users of the console: %w", err)
	}
	if stat.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the users of the console: others may read or write %s: use chmod 600", u.file)
	}
	list, err := readAccounts(u.file)
	if err != nil {
		return err
	}
	for _, a := range list {
		if err := checkName(a.Name); err != nil {
			return fmt.Errorf("the users of the console: %w, after \"anser console user remove '%s' --users %s\"", err, a.Name, u.file)
		}
	}
	if u.decoy, err = decoy(u.decoy, list); err != nil {
		return err
	}
	u.list, u.stat, u.looked = list, stat, time.Now()
	return nil
}

// decoy returns a hash of no password, which takes as long to compare as those of the accounts. old
// is one of an earlier list, or nil.
func decoy(old []byte, list []account) ([]byte, error) {
	most := 0
	for _, a := range list {
		n, err := bcrypt.Cost([]byte(a.Hash))
		if err != nil {
			return nil, err
		}
		most = max(most, n)
	}
	if most == 0 {
		most = cost
	}
	if n, err := bcrypt.Cost(old); err == nil && n == most {
		return old, nil
	}
	return bcrypt.GenerateFromPassword([]byte(random()[:MinPassword]), most)
}

func readAccounts(file string) ([]account, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the users of the console: %w", err)
	}
	var doc struct {
		Users []account `json:"users"`
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("the users of the console: %s has %d bytes: at most %d", file, len(data), maxFile)
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("the users of the console: %s is not what \"anser console user add\" writes: %w", file, err)
	}
	if len(doc.Users) > maxUsers {
		return nil, fmt.Errorf("the users of the console: %s has %d users: at most %d", file, len(doc.Users), maxUsers)
	}
	for i, a := range doc.Users {
		if err := checkForm(a.Name); err != nil {
			return nil, fmt.Errorf("the users of the console: %s: %w", file, err)
		}
		if _, err := bcrypt.Cost([]byte(a.Hash)); err != nil || a.Role == 0 {
			return nil, fmt.Errorf("the users of the console: %s: %s has no role or no valid hash: add the user with \"anser console user add\"", file, a.Name)
		}
		if slices.ContainsFunc(doc.Users[:i], func(b account) bool { return b.Name == a.Name }) {
			return nil, fmt.Errorf("the users of the console: %s has %s twice", file, a.Name)
		}
	}
	return doc.Users, nil
}

// currentLocked returns the users, which it reads again if the file has changed. While the file
// cannot be read there are no users: the change may be meant to lock a user out.
func (u *Users) currentLocked() []account {
	if time.Since(u.looked) < lookAgain {
		return u.list
	}
	u.looked = time.Now()
	stat, err := os.Stat(u.file)
	if err == nil && u.stat != nil && stat.ModTime().Equal(u.stat.ModTime()) && stat.Size() == u.stat.Size() {
		return u.list
	}
	if err := u.readLocked(); err != nil {
		u.list, u.stat = nil, nil
	}
	return u.list
}

func (u *Users) find(name string) (account, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range u.currentLocked() {
		if a.Name == name {
			return a, true
		}
	}
	return account{}, false
}

// has reports whether there is a user with a name.
func (u *Users) has(name string) bool {
	_, ok := u.find(name)
	return ok
}

// List returns the users, sorted by their names.
func (u *Users) List() []User {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := []User{}
	for _, a := range u.currentLocked() {
		list = append(list, User{a.Name, a.Role})
	}
	slices.SortFunc(list, func(a, b User) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// stamp identifies the password of an account.
func (a account) stamp() string {
	sum := sha256.Sum256([]byte(a.Hash))
	return string(sum[:])
}

// still reports whether a user has the role and the password of a login.
func (u *Users) still(user User, stamp string) bool {
	a, ok := u.find(user.Name)
	return ok && a.Role == user.Role && a.stamp() == stamp
}

// login returns the account for a name and a password.
func (u *Users) login(name, password string) (account, bool) {
	a, known := u.find(name)
	hash := []byte(a.Hash)
	if !known {
		u.mu.Lock()
		hash = u.decoy
		u.mu.Unlock()
	}
	if len(password) > maxPassword {
		password = password[:maxPassword-1] // no password: it takes as long as one
		known = false
	}
	matches := bcrypt.CompareHashAndPassword(hash, []byte(password)) == nil
	return a, known && matches
}

// SetUser adds a user to the file, or changes the role and the password of one. The file is created
// if it does not exist.
func SetUser(file, name string, role Role, password string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if _, err := role.MarshalText(); err != nil {
		return err
	}
	if len(password) < MinPassword || len(password) > maxPassword {
		return fmt.Errorf("the password has %d bytes: use %d to %d", len(password), MinPassword, maxPassword)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), cost)
	if err != nil {
		return err
	}
	return edit(file, true, func(list []account) ([]account, error) {
		list = slices.DeleteFunc(list, func(a account) bool { return a.Name == name })
		return append(list, account{name, role, string(hash)}), nil
	})
}

// RemoveUser removes a user from the file.
func RemoveUser(file, name string) error {
	return edit(file, false, func(list []account) ([]account, error) {
		n := len(list)
		if list = slices.DeleteFunc(list, func(a account) bool { return a.Name == name }); len(list) == n {
			return nil, fmt.Errorf("%s has no user %q", file, name)
		}
		return list, nil
	})
}

// edit replaces the file by one with other users.
func edit(file string, create bool, change func([]account) ([]account, error)) error {
	list, err := readAccounts(file)
	if err != nil && !(create && errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	if list, err = change(list); err != nil {
		return err
	}
	data, err := json.MarshalIndent(map[string]any{"users": list}, "", "  ")
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(file), ".users-*") // for the user alone
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	if _, err = temp.Write(append(data, '\n')); err == nil {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), file)
}
