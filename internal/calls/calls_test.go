package calls

import "testing"

func TestTells(t *testing.T) {
	for field, want := range map[string]bool{
		"file_path": true, "notebook_path": true, "command": true, "description": true, "pattern": true, "path": true, "url": true,
		"skill": true, "args": true, "replace_all": true, "edit_mode": true, "cell_type": true, "cell_id": true,
		"": false, "content": false, "old_string": false, "Path": false, "paths": false, "notebook_path_": false,
	} {
		if Tells([]byte(field)) != want {
			t.Errorf("%q: %t", field, !want)
		}
	}
}
