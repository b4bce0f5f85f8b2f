package wire

// Op is what a Request asks for; it is the first byte of its payload.
type Op uint8

// The operations of the hand.
const (
	OpExec  Op = 1
	OpRead  Op = 2
	OpWrite Op = 3
	OpEdit  Op = 4
	OpGlob  Op = 5
	OpGrep  Op = 6
	OpStat  Op = 7
)

// Codes of a Fail, readable by a model. They are part of the contract: only
// added to, never renamed.
const (
	CodeNotFound     = "not_found"
	CodeDenied       = "denied"
	CodeIsDirectory  = "is_directory"
	CodeNotDirectory = "not_directory"
	CodeNotRegular   = "not_regular"
	CodeTooLarge     = "too_large"
	CodeNoMatch      = "no_match"
	CodeNotUnique    = "not_unique"
	CodeBadPattern   = "bad_pattern"
	CodeBadArgument  = "bad_argument"
	CodeNoSpace      = "no_space"
	CodeNotRunnable  = "not_runnable"
	CodeBusy         = "busy"
	CodeIO           = "io"
	CodeRefused      = "refused" // set-up only: Message names the control
)

// Exec starts a program. Env is complete: nothing is added or inherited.
type Exec struct {
	Argv  []string
	Dir   string
	Env   []string
	Stdin bool // Body frames follow; otherwise standard input is empty
}

// Encode gives the payload of the Request.
func (m Exec) Encode() []byte {
	e := Encoder{B: []byte{byte(OpExec)}}
	e.Strs(m.Argv)
	e.Str(m.Dir)
	e.Strs(m.Env)
	e.Bool(m.Stdin)
	return e.B
}

// DecodeExec reads an Exec after its Op.
func DecodeExec(d *Decoder) (Exec, error) {
	m := Exec{Argv: d.Strs(), Dir: d.Str(), Env: d.Strs(), Stdin: d.Bool()}
	return m, d.End()
}

// Exited ends an Exec. Exactly one of Code (when Signal is 0) and Signal counts.
type Exited struct {
	Code        int64
	Signal      uint64
	Interrupted bool // killed because a call of the same sandbox was cancelled
}

// Encode gives the payload of the Done.
func (m Exited) Encode() []byte {
	var e Encoder
	e.I64(m.Code)
	e.U64(m.Signal)
	e.Bool(m.Interrupted)
	return e.B
}

// DecodeExited reads it.
func DecodeExited(p []byte) (Exited, error) {
	d := NewDecoder(p)
	m := Exited{Code: d.I64(), Signal: d.U64(), Interrupted: d.Bool()}
	return m, d.End()
}

// File is the request of Read, Write, Edit, Glob, Grep and Stat: one shape,
// of which each operation uses the fields it documents.
type File struct {
	Op     Op
	Path   string // Read, Write, Edit, Stat: the file. Glob, Grep: where to begin
	Offset uint64 // Read, bytes
	Limit  uint64 // Read, bytes; Glob and Grep, results; Write, Edit: largest file, bytes
	Mode   uint64 // Write: permission bits, 0 keeps the old ones or gives 0644
	Old    string // Edit: text to replace. Glob, Grep: pattern
	New    string // Edit: its replacement. Grep: glob of file names, empty for all
	All    bool   // Edit: every occurrence
}

// Encode gives the payload of the Request.
func (m File) Encode() []byte {
	e := Encoder{B: []byte{byte(m.Op)}}
	e.Str(m.Path)
	e.U64(m.Offset)
	e.U64(m.Limit)
	e.U64(m.Mode)
	e.Str(m.Old)
	e.Str(m.New)
	e.Bool(m.All)
	return e.B
}

// DecodeFile reads a File after its Op.
func DecodeFile(op Op, d *Decoder) (File, error) {
	m := File{Op: op, Path: d.Str(), Offset: d.U64(), Limit: d.U64(), Mode: d.U64(), Old: d.Str(), New: d.Str(), All: d.Bool()}
	return m, d.End()
}

// FileDone ends a File request.
type FileDone struct {
	Size      uint64 // Read, Stat, Write, Edit: bytes of the whole file
	Count     uint64 // Edit: replacements. Glob, Grep: results
	Mode      uint64 // Stat: permission bits and type as in st_mode
	ModTime   int64  // Stat: nanoseconds since 1970, UTC
	Truncated bool   // Read: more follows. Glob, Grep: more results exist
	Created   bool   // Write: the file did not exist
}

// Encode gives the payload of the Done.
func (m FileDone) Encode() []byte {
	var e Encoder
	e.U64(m.Size)
	e.U64(m.Count)
	e.U64(m.Mode)
	e.I64(m.ModTime)
	e.Bool(m.Truncated)
	e.Bool(m.Created)
	return e.B
}

// DecodeFileDone reads it.
func DecodeFileDone(p []byte) (FileDone, error) {
	d := NewDecoder(p)
	m := FileDone{Size: d.U64(), Count: d.U64(), Mode: d.U64(), ModTime: d.I64(), Truncated: d.Bool(), Created: d.Bool()}
	return m, d.End()
}

// Match is one result of Grep; Glob uses Path alone.
type Match struct {
	Path string
	Line uint64 // from 1
	Text string // the line without its end, cut at 500 bytes
}

// Append adds a result to the stream.
func (m Match) Append(e *Encoder) {
	e.Str(m.Path)
	e.U64(m.Line)
	e.Str(m.Text)
}

// DecodeMatches reads a whole result stream.
func DecodeMatches(p []byte) ([]Match, error) {
	d := NewDecoder(p)
	var ms []Match
	for d.Len() > 0 && d.Err() == nil {
		ms = append(ms, Match{Path: d.Str(), Line: d.U64(), Text: d.Str()})
	}
	return ms, d.Err()
}

// Fail ends any request, or the set-up, without success.
type Fail struct {
	Code    string
	Message string
	Control string // set-up only: the control that could not be installed
}

// Encode gives the payload, cutting a message that would not fit.
func (m Fail) Encode() []byte {
	if len(m.Message) > 4096 {
		m.Message = m.Message[:4096]
	}
	var e Encoder
	e.Str(m.Code)
	e.Str(m.Message)
	e.Str(m.Control)
	return e.B
}

// DecodeFail reads it.
func DecodeFail(p []byte) (Fail, error) {
	d := NewDecoder(p)
	m := Fail{Code: d.Str(), Message: d.Str(), Control: d.Str()}
	return m, d.End()
}

// Ready ends the set-up: the hand serves from now on.
type Ready struct {
	Installed []string // names of the controls that the hand says it installed
	Failed    []Fail   // Control and Message of those that were optional and failed
}

// Encode gives the payload.
func (m Ready) Encode() []byte {
	var e Encoder
	e.Strs(m.Installed)
	e.U64(uint64(len(m.Failed)))
	for _, f := range m.Failed {
		e.Str(f.Control)
		e.Str(f.Message)
	}
	return e.B
}

// DecodeReady reads it.
func DecodeReady(p []byte) (Ready, error) {
	d := NewDecoder(p)
	m := Ready{Installed: d.Strs()}
	for n := d.U64(); n > 0 && d.Err() == nil; n-- {
		m.Failed = append(m.Failed, Fail{Control: d.Str(), Message: d.Str()})
	}
	return m, d.End()
}

// EncodeCredit and DecodeCredit carry a number of bytes.
func EncodeCredit(n int) []byte {
	var e Encoder
	e.U64(uint64(n))
	return e.B
}

// DecodeCredit refuses more than a window at once.
func DecodeCredit(p []byte) (int, error) {
	d := NewDecoder(p)
	n := d.U64()
	if err := d.End(); err != nil {
		return 0, err
	}
	if n == 0 || n > Window {
		return 0, ErrProtocol
	}
	return int(n), nil
}
