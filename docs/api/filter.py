#!/usr/bin/env python3
"""A public header as Doxygen wants it: filter.py HEADER, for INPUT_FILTER.

The headers are written to be read as they are. This turns their comments into Doxygen's: what stands before a declaration or after a member
on its line documents it, "Returns", "Thread" and the like become sections, names of arguments become parameters, and the rulers between
parts become groups.
"""
import re
import sys

RULER = re.compile(r"/\* -{2,} ?([^-]*?):?(?: ?-+)? ?(?:-+ )?\*/$")
ENTRY = re.compile(r" \*  (\w[\w., ]*?)  +(\S.*)$")
SECTIONS = {"Thread", "Source", "Memory", "Cost", "Disk"}
# Characters that mean something to Doxygen, but not in these comments.
ESCAPES = str.maketrans({"<": "&lt;", ">": "&gt;", "@": "@@", "\\": "\\\\", "#": "\\#"})


def entry(name, text, parameters):
    """One line of the list under a function's comment."""
    if name == "Returns":
        return " * @return " + text
    if name in SECTIONS:
        return " * @par %s\n * %s" % (name, text)
    names = [n.strip() for n in name.split(",")]
    if parameters and all(n in parameters for n in names):
        return " * @param %s %s" % (",".join(names), text)
    return " * - **%s** %s" % (name, text)


def parameters_after(lines, i):
    """Names of the arguments of the function that is declared from line i on; none where it is no function."""
    declaration = ""
    for line in lines[i:i + 12]:
        declaration += line
        if ";" in line:
            break
    if "(" not in declaration or declaration.startswith(("typedef", "#", "/*")):
        return []
    return re.findall(r"(\w+)(?:\[[^]]*\])?\s*[,)]", declaration[declaration.index("("):])


def comment(lines, i):
    """The comment block that begins at line i, documented; and the line after it."""
    end = i
    while "*/" not in lines[end]:
        end += 1
    parameters = parameters_after(lines, end + 1)
    out, listed = [], False
    for k in range(i, end + 1):
        text = lines[k]
        closing = text.endswith("*/")
        body = (text[:-2] if closing else text).translate(ESCAPES)
        m = ENTRY.match(body)
        plain = re.match(r"^ \*  ?\S", body)
        if k == i:
            body = "/** " + ("@file\n * " if i == 0 else "") + re.sub(r"^/\*\*? ?", "", body)
        elif m:
            body = entry(m[1], m[2], parameters)
        else:
            # Text that is not the list's any more.
            body = (" *\n" if listed and plain else "") + re.sub(r"^ \* +", " * ", body)
        listed = bool(m) or (listed and not plain)
        out.append(body + ("*/" if closing else ""))
    return out, end + 1


def members(line):
    """A comment after a member documents that member."""
    m = re.match(r"^( +[^/\s][^/]*?)/\*+ (.*)$", line)
    if not m:
        return line
    text = m[2]
    return m[1] + "/**< " + (text[:-2].translate(ESCAPES) + "*/" if text.endswith("*/") else text.translate(ESCAPES))


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        lines = f.read().split("\n")
    out, i, group, block, declared = [], 0, False, [], False
    while i < len(lines):
        line = lines[i]
        ruler = RULER.match(line)
        declaration = re.match(r"[A-Z0-9_]+_API ", line)
        if ruler and ruler[1].strip():
            out.append("%s/** @name %s */ /** @{ */" % ("/** @} */ " if group else "", ruler[1].strip()))
            group = True
        elif line.startswith("/*"):
            block, i = comment(lines, i)
            out += block
            declared = False
            continue
        elif group and line.startswith("#ifdef __cplusplus"):
            out += ["/** @} */", line]
            group = False
        else:
            # Functions without a blank line between share the comment of the first.
            if declaration and declared:
                out += [b for b in block if "@param" not in b]
            out.append(members(line))
        declared = bool(line.strip()) and (declared or bool(declaration))
        i += 1
    print("\n".join(out))


main()
