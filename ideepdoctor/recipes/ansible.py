"""The recipe ``ansible``: a role that gets the doctor onto a host and runs its setup there; a playbook for it."""

from __future__ import annotations

from ideepdoctor.recipes.base import Recipe, RecipeFile

ROLE = "roles/ideepdoctor"

RECIPE = Recipe(
    name="ansible",
    title="Ansible role",
    files=(
        RecipeFile("playbook.yml", "ansible-playbook.yml"),
        RecipeFile("inventory.ini", "ansible-inventory.ini"),
        RecipeFile(f"{ROLE}/README.md", "ansible-readme.md"),
        RecipeFile(f"{ROLE}/meta/main.yml", "ansible-meta.yml"),
        RecipeFile(f"{ROLE}/meta/argument_specs.yml", "ansible-argument-specs.yml"),
        RecipeFile(f"{ROLE}/defaults/main.yml", "ansible-defaults.yml"),
        RecipeFile(f"{ROLE}/tasks/main.yml", "ansible-tasks-main.yml"),
        RecipeFile(f"{ROLE}/tasks/doctor.yml", "ansible-tasks-doctor.yml"),
        RecipeFile(f"{ROLE}/tasks/setup.yml", "ansible-tasks-setup.yml"),
    ),
    uses="Chainer with iDeep on every host of an inventory, set up and proved; a second run changes nothing",
    start="ansible-playbook -i inventory.ini playbook.yml",
)
