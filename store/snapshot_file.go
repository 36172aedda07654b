package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is what is written and read of a file.
type File interface {
	io.ReadWriteSeeker
	Name() string
	Sync() error
	Close() error
}

// FS is what snapshots need of a file system, so that a test can pull the plug
// at every step. [Disk] is the real one.
type FS interface {
	Open(name string) (File, error)
	// CreateTemp makes a file of mode 0600 and of a name that no other has.
	CreateTemp(dir, pattern string) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	// SyncDir makes the names in a folder last.
	SyncDir(dir string) error
}

// Disk is the operating system's file system.
type Disk struct{}

// Open implements [FS].
func (Disk) Open(name string) (File, error) { return os.Open(name) }

// CreateTemp implements [FS].
func (Disk) CreateTemp(dir, pattern string) (File, error) { return os.CreateTemp(dir, pattern) }

// Rename implements [FS].
func (Disk) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements [FS].
func (Disk) Remove(name string) error { return os.Remove(name) }

// SyncDir implements [FS].
func (Disk) SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SaveFile writes a snapshot to a file of the given name. Whatever happens, also
// a loss of power, the name leads to the whole old snapshot or the whole new
// one: the new one is written beside it, made to last, and then takes the name.
func (x *Index) SaveFile(fsys FS, name string, binding [16]byte) error {
	if err := x.saveFile(fsys, name, binding); err != nil {
		return fmt.Errorf("snapshot %s: %w", name, err)
	}
	return nil
}

func (x *Index) saveFile(fsys FS, name string, binding [16]byte) error {
	dir := filepath.Dir(name)
	f, err := fsys.CreateTemp(dir, filepath.Base(name)+".new-*")
	if err != nil {
		return err
	}
	err = x.Save(f, binding)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = fsys.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, fsys.Remove(f.Name()))
	}
	return fsys.SyncDir(dir)
}

// RestoreFile fills an index that is empty from a snapshot file. A file that
// isn't there gives an error that is [fs.ErrNotExist]; of one that is damaged
// the error wraps [ErrDamaged], and says under which name the file was set aside.
// A snapshot of another key, [ErrKey], stays where it is.
func (x *Index) RestoreFile(fsys FS, name string, binding [16]byte) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	err = errors.Join(x.Restore(f, binding), f.Close())
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", name, err)
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	aside, e := fsys.CreateTemp(filepath.Dir(name), filepath.Base(name)+".damaged-*")
	if e != nil {
		return errors.Join(err, e)
	}
	if e := errors.Join(aside.Close(), fsys.Rename(name, aside.Name()), fsys.SyncDir(filepath.Dir(name))); e != nil && !errors.Is(e, fs.ErrNotExist) {
		return errors.Join(err, e)
	}
	return fmt.Errorf("%w; set aside as %s", err, aside.Name())
}
