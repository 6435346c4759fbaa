"""The functions of lists, written as functions that are read like those of programs: they use only lengths, items, `append` and `pop`
of the last item."""


def total(items, start=0):
    for item in items:
        start = start + item
    return start


def least(items):
    found = items[0]
    for item in items:
        found = item if item < found else found
    return found


def greatest(items):
    found = items[0]
    for item in items:
        found = item if item > found else found
    return found


def any_of(items):
    for item in items:
        if item:
            return True
    return False


def all_of(items):
    for item in items:
        if not item:
            return False
    return True


def contains(items, wanted):
    for item in items:
        if item == wanted:
            return True
    return False


def count(items, wanted):
    found = 0
    for item in items:
        found += item == wanted
    return found


def reverse(items):
    for place in range(len(items) // 2):
        other = len(items) - 1 - place
        items[place], items[other] = items[other], items[place]


def sort(items):
    for end in range(1, len(items)):
        for place in range(end, 0, -1):
            if not items[place] < items[place - 1]:
                break
            items[place], items[place - 1] = items[place - 1], items[place]


def insert(items, place, item):
    place = max(place + len(items), 0) if place < 0 else min(place, len(items))
    items.append(item)
    for at in range(len(items) - 1, place, -1):
        items[at] = items[at - 1]
    items[place] = item


def pop(items, place):
    found = items[place]
    place = place + len(items) if place < 0 else place
    for at in range(place, len(items) - 1):
        items[at] = items[at + 1]
    items.pop()
    return found


def extend(items, others):
    for item in others:
        items.append(item)


def sorted_list(items):
    made = list(items)
    made.sort()
    return made
