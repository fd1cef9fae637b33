/* Texts of the protocol: enum values by name, and which texts may name a run or an attribute. Pure; any
 * thread. */
#ifndef COMMON_WIRE_NAMES_H
#define COMMON_WIRE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest.pb-c.h"

enum { WIRE_ENUM_TEXT_BYTES = 32 };

/* An enum value as text: in lower case, without the prefix that all values share ("hole" for ERROR_HOLE,
 * "position_x", "uint16", "ring_full"); the number for one that is not known. Returns `text`.
 * descriptor  photon__error_code__descriptor and the like */
const char *wire_enum_text(const ProtobufCEnumDescriptor *descriptor, int value,
                           char text[WIRE_ENUM_TEXT_BYTES]);

/* The value of such a text, in any case. Returns 0, or -1 when there is none (*value is untouched). */
int wire_enum_value(const ProtobufCEnumDescriptor *descriptor, const char *text, int *value);

/* Bytes of one element; 0 for a number that is not a type. */
size_t wire_type_bytes(uint32_t type);

/* Why a text cannot name a run ([A-Za-z0-9][A-Za-z0-9._-]{0,127}, not ending as one of the daemon's own files
 * does); NULL when it can. */
const char *wire_run_name_fault(const char *name);

/* The same for a dataset: 1 to 255 bytes of UTF-8 without control characters. */
const char *wire_dataset_name_fault(const char *name);

/* The same for an attribute: its key is not empty, and both are UTF-8. */
const char *wire_attribute_fault(const char *key, const char *value);

#endif
