/* Notes: small files .photond/NAME.SUFFIX in a data folder that say what is still to be done for NAME.photons, which was closed, and so
 * survive any end of the daemon. */
#ifndef PD_NOTES_H
#define PD_NOTES_H

#include "datadir.h"

#define PD_NOTE_CERTIFY ".certify"         /* it has no certificate yet (certifier.h) */
#define PD_NOTE_UNCERTIFIED ".uncertified" /* that could not be made */
#define PD_NOTE_FINAL ".final"             /* its hook has not ended well yet (keeper.h) */

enum { PD_NOTE_BYTES = PD_FILE_NAME_BYTES + 16 };

/* The note's path, from the data folder. */
void pd_note_path(char ret[PD_NOTE_BYTES], const char *name, const char *suffix);

/* Makes one. Returns 0 or a negative errno. */
PD_MUST_USE int pd_note_make(const pd_datadir *dir, const char *name, const char *suffix);

/* The file `from` of the folder becomes one. Returns 0 or a negative errno: it is there still. */
PD_MUST_USE int pd_note_take(const pd_datadir *dir, const char *from, const char *name, const char *suffix);

#endif
