/* data/tar_list.h - lists the files of a set of tars, from the index file if there is a valid one. */
#ifndef ATT_DATA_TAR_LIST_H
#define ATT_DATA_TAR_LIST_H

#include "data/tar_index.h"
#include "data/tar_set.h"

/* Lists the files of the set. The paths of the entries are those that the files would have if the tars were unpacked:
 * a tar inside a tar, and a tar of the set if set->class_tars, becomes a folder of its name without ".tar" if its
 * images lie in no folder; other tars are unpacked in the folder where they lie. Tars are unpacked up to one level
 * deep. In shards (data/shards.h), which the first tar with images decides, only images are listed, as
 * "<tar>/<path in the tar>".
 *
 * A listing of 1000 files or more is kept in an index file: beside the first tar, named ".<tar>-<hash>.index"
 * with a hash of the names of all tars, or if that folder cannot be written in "$XDG_CACHE_HOME/attscope"
 * ("$HOME/.cache/attscope"). The log says when tars are listed,
 * and why an index file is not used or was not written.
 *
 * The caller sets index->arena.context, and frees the index, also after a failure. Errors: ERR_NOT_FOUND,
 * ERR_UNSUPPORTED (a compressed tar), ERR_FORMAT (a damaged tar), ERR_IO, ERR_MEMORY, ERR_STOPPED. */
att_status att_tar_list(const att_tar_set *set, att_tar_index *index);

/* Whether an open file still has the size and modification time of the tar. */
bool att_tar_unchanged(const att_tar_file *tar, int descriptor);

#endif
